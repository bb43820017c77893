#include "gil.h"

#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace afterglow::python {
namespace {

/// Where threads pass on their way to the GIL.
class Gate {
 public:
  void enter() {
    {
      const std::lock_guard lock(mutex_);
      if (!exiting_ || *exiting_ == std::this_thread::get_id()) {
        ++passing_;
        return;
      }
    }
    for (;;) pause();  // until the process has ended
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    --passing_;
    changed_.notify_all();
  }
  void close() {
    std::unique_lock lock(mutex_);
    exiting_ = std::this_thread::get_id();
    changed_.wait(lock, [this] { return passing_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int passing_ = 0;
  std::optional<std::thread::id> exiting_;
};

// Never destroyed: threads wait at it until the process has ended.
Gate*& gate() {
  static Gate* one = new Gate;
  return one;
}

}  // namespace

GilReleased::~GilReleased() {
  gate()->enter();
  PyEval_RestoreThread(thread_);
  gate()->leave();
}

GilHeld::GilHeld() {
  gate()->enter();
  state_ = PyGILState_Ensure();
  gate()->leave();
}

void begin_exit() {
  PyThreadState* thread = PyEval_SaveThread();
  gate()->close();
  PyEval_RestoreThread(thread);
}

void after_fork() {
  gate() = new Gate;
}

}  // namespace afterglow::python
