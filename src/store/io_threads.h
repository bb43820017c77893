#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace afterglow {

/// Threads that run tasks in the order they were posted.
/// Thread: post from any thread, also from a task.
class IoThreads {
 public:
  explicit IoThreads(int threads);
  /// Runs all tasks that are left, then joins.
  ~IoThreads();
  IoThreads(const IoThreads&) = delete;
  IoThreads& operator=(const IoThreads&) = delete;

  int threads() const { return static_cast<int>(threads_.size()); }
  void post(std::function<void()> task);

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;  // guarded by mutex_
  bool ending_ = false;                      // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace afterglow
