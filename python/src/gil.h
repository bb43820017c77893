#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <utility>

namespace afterglow::python {

/// Lets other Python threads run while this one computes or waits. Once the
/// interpreter has begun to exit, a thread other than the exiting one never
/// comes back: Python would end it with all C++ frames below it.
/// Requires: the thread has the GIL.
class GilReleased {
 public:
  GilReleased() : thread_(PyEval_SaveThread()) {}
  ~GilReleased();
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  PyThreadState* thread_;
};

/// Takes the GIL on any thread. As the interpreter exits: as GilReleased.
class GilHeld {
 public:
  GilHeld();
  ~GilHeld() { PyGILState_Release(state_); }
  GilHeld(const GilHeld&) = delete;
  GilHeld& operator=(const GilHeld&) = delete;

 private:
  PyGILState_STATE state_;
};

/// From now on only this thread takes the GIL in this module. Waits for others
/// that are about to. Requires: the GIL.
void begin_exit();

/// Forgets what other threads were about to do: a forked process has none.
void after_fork();

/// Waits without the GIL until ready(at most) is true. Between slices signal
/// handlers run, so that KeyboardInterrupt comes promptly.
/// Throws: what ready throws, what a signal handler raised.
template <class Ready>
void wait_with_signals(Ready&& ready) {
  constexpr std::chrono::milliseconds kSlice(20);
  for (;;) {
    bool done = false;
    {
      const GilReleased released;
      done = ready(kSlice);
    }
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
    if (done) return;
  }
}

/// What function() returns, called without the GIL.
template <class Function>
auto without_gil(Function&& function) {
  const GilReleased released;
  return std::forward<Function>(function)();
}

}  // namespace afterglow::python
