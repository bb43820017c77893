#pragma once

#include <cstddef>
#include <string>

namespace afterglow {

/// A line on stderr that shows how much of a long prompt is read; silent
/// unless stderr is a terminal.
/// Thread: one thread at a time.
class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar() { clear(); }

  void show(std::size_t done, std::size_t total);
  /// Takes the line away.
  void clear();

  /// What show draws: [####....] 50/100.
  static std::string draw(std::size_t done, std::size_t total);

 private:
  bool terminal_ = false;
  bool shown_ = false;
};

}  // namespace afterglow
