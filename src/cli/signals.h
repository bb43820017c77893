#pragma once

#include <signal.h>

#include <chrono>
#include <initializer_list>
#include <vector>

namespace afterglow {

/// Turns SIGINT and SIGTERM into something to wait for; SIGPIPE is ignored.
/// What the process was started to ignore, as under nohup, stays ignored.
/// One at a time in a process.
class Signals {
 public:
  Signals();
  /// Signals act as before again. Where none was taken but one came, it acts
  /// now.
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// Waits for a signal; true when one came. Each counts once.
  /// Thread: one thread at a time.
  bool wait(std::chrono::milliseconds at_most) { return take(at_most) != 0; }
  /// The same; which signal came, or 0.
  int take(std::chrono::milliseconds at_most);

  /// Waits for further signals, too.
  void also(std::initializer_list<int> numbers);
  /// Whether the terminal is gone that the process had when the object was
  /// made: what a SIGHUP says that nobody sent on purpose.
  bool lost_terminal() const;
  /// Waits until a descriptor can be read or has ended, or a signal is there.
  /// True: the descriptor.
  bool wait_with(int descriptor);
  /// Stops the process as Ctrl-Z does, until it is told to go on.
  /// Requires: also({SIGTSTP}).
  void suspend();

  /// True while there is such an object.
  static bool watched();
  /// True when there is one, and a signal that no wait has taken yet.
  /// Thread: any, as long as the object lives.
  static bool pending();

 private:
  struct Watched {
    int number;
    struct sigaction before;
  };

  std::vector<Watched> watched_;
  struct sigaction broken_pipe_ {};  // before
  bool taken_ = false;
  const bool had_terminal_;
};

}  // namespace afterglow
