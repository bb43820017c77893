#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace afterglow {

/// $XDG_STATE_HOME/afterglow/chat_history, by default below ~/.local/state.
/// Empty where there is no home.
std::string default_history_file();

/// Lines that were typed, in a file: a JSON text a line, so that a line may
/// have line breaks. Several processes may add at once. What cannot be read or
/// written is no history, and nothing worse.
/// Thread: one thread at a time.
class LineHistory {
 public:
  /// The file and its folders are made with the first line, mode 0600 and
  /// 0700. Empty: nothing is kept.
  explicit LineHistory(std::string file) : file_(std::move(file)) {}

  /// The latest `most`, oldest first. A file that has grown to twice of that
  /// is cut to them.
  std::vector<std::string> read(std::size_t most);
  void add(const std::string& line);

 private:
  std::string file_;
};

}  // namespace afterglow
