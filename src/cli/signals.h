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

  /// True while there is such an object.
  static bool watched();
  /// True when there is one, and a signal that no wait has taken yet.
  /// Thread: any, as long as the object lives.
  static bool pending();
};

}  // namespace afterglow
