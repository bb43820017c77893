#include "store/io_threads.h"

#include <algorithm>
#include <utility>

namespace afterglow {

IoThreads::IoThreads(int threads) {
  for (int i = 0; i < std::max(1, threads); ++i) {
    threads_.emplace_back([this] { loop(); });
  }
}

IoThreads::~IoThreads() {
  {
    std::lock_guard guard(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void IoThreads::post(std::function<void()> task) {
  {
    std::lock_guard guard(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void IoThreads::loop() {
  std::unique_lock guard(mutex_);
  for (;;) {
    wake_.wait(guard, [&] { return ending_ || !tasks_.empty(); });
    if (tasks_.empty()) {
      return;
    }
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    guard.unlock();
    task();
    task = nullptr;
    guard.lock();
  }
}

}  // namespace afterglow
