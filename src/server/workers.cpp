#include "server/workers.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "server/log_value.h"

namespace afterglow {
namespace {

void run(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& thrown) {
    spdlog::error("http work error={}", log_value(thrown.what()));
  }
}

}  // namespace

Workers::Workers(std::size_t threads)
    : most_of_one_(std::max<std::size_t>(threads, 2) - 1) {
  for (std::size_t i = 0; i < threads; ++i) {
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

void Workers::post(const std::string& client, std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push(client, {client, std::move(job)});
    ++waiting_;
    ++jobs_;
  }
  changed_.notify_one();
}

std::size_t Workers::jobs() const {
  const std::lock_guard lock(mutex_);
  return jobs_;
}

std::size_t Workers::running(const std::string& client) const {
  const auto found = running_.find(client);
  return found == running_.end() ? 0 : found->second;
}

// A thread that has ended a job looks for the next one itself, so what may
// not run yet is looked at again as soon as it may.
void Workers::loop() {
  std::unique_lock lock(mutex_);
  while (!stopping_ || waiting_ > 0) {
    std::optional<Job> job = queue_.take(
        [this](const std::string& client) { return running(client); },
        [this](const Job& one) { return running(one.client) < most_of_one_; }
    );
    if (!job) {
      changed_.wait(lock);
      continue;
    }
    --waiting_;
    ++running_[job->client];
    lock.unlock();
    run(job->work);
    job->work = nullptr;
    lock.lock();
    --jobs_;
    if (--running_[job->client] == 0) running_.erase(job->client);
    if (stopping_) changed_.notify_all();
  }
}

}  // namespace afterglow
