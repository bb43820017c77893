#pragma once

#include <chrono>

namespace afterglow {

/// Turns SIGINT and SIGTERM into something to wait for; SIGPIPE is ignored.
/// One a process, made before other threads.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// Waits for a signal; true when one came. Each counts once.
  /// Thread: one thread at a time.
  bool wait(std::chrono::milliseconds at_most);

 private:
  int read_end_ = -1;
};

}  // namespace afterglow
