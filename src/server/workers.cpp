#include "server/workers.h"

#include <spdlog/spdlog.h>

#include <exception>
#include <utility>

#include "server/log_value.h"

namespace afterglow {
namespace {

void run(const std::function<void()>& job) {
  try {
    job();
  } catch (const std::exception& thrown) {
    spdlog::error("http work error={}", log_value(thrown.what()));
  }
}

}  // namespace

Workers::Workers(int threads) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { loop(); });
  }
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::post(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
}

void Workers::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    auto job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    run(job);
    job = nullptr;
    lock.lock();
  }
}

}  // namespace afterglow
