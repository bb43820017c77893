#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/fair_queue.h"

namespace afterglow {

/// Threads for work that takes milliseconds or more. Clients take turns, and
/// while there are several threads, one client gets all of them but one.
/// Thread: safe from any thread.
class Workers {
 public:
  explicit Workers(std::size_t threads);
  /// Finishes all jobs.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// What a job throws is logged and goes no further.
  void post(const std::string& client, std::function<void()> job);

  /// Jobs that wait or run.
  std::size_t jobs() const;

 private:
  struct Job {
    std::string client;
    std::function<void()> work;
  };

  void loop();
  std::size_t running(const std::string& client) const;

  const std::size_t most_of_one_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  FairQueue<Job> queue_;
  std::unordered_map<std::string, std::size_t> running_;
  std::size_t jobs_ = 0;
  std::size_t waiting_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace afterglow
