#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace afterglow {

/// Threads for work that takes milliseconds or more, in order of arrival.
/// Thread: safe from any thread.
class Workers {
 public:
  explicit Workers(int threads);
  /// Finishes all jobs.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// What a job throws is logged and goes no further.
  void post(std::function<void()> job);

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace afterglow
