#pragma once

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "engine/collector.h"
#include "engine/fake_runner.h"
#include "engine/scheduler.h"

namespace afterglow {

/// A scheduler over a fake model with its generation thread. For tests.
class Bench {
 public:
  explicit Bench(
      SchedulerOptions options = {},
      CacheLimits limits = {},
      bool with_disk = false
  )
      : cache_(runner_.layout().page_bytes(), limits, with_disk),
        scheduler_(runner_, cache_, nullptr, options) {}
  ~Bench() {
    scheduler_.stop();
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  // Separate, so that a test can queue requests before any is looked at.
  void run() {
    thread_ = std::thread([this] { scheduler_.run(); });
  }

  Result<RequestId> submit(
      Tokens prompt, std::size_t max_tokens, std::shared_ptr<EventSink> sink
  ) {
    GenerationRequest request;
    request.prompt = std::move(prompt);
    request.max_tokens = max_tokens;
    request.sink = std::move(sink);
    return scheduler_.submit(std::move(request));
  }
  /// The same with all that the request says.
  std::shared_ptr<Collector> submit(GenerationRequest request) {
    auto sink = std::make_shared<Collector>();
    request.sink = sink;
    EXPECT_TRUE(scheduler_.submit(std::move(request)).ok());
    return sink;
  }

  // Runs one request to its end.
  std::shared_ptr<Collector> ask(Tokens prompt, std::size_t max_tokens) {
    auto sink = std::make_shared<Collector>();
    EXPECT_TRUE(submit(std::move(prompt), max_tokens, sink).ok());
    EXPECT_TRUE(sink->wait());
    return sink;
  }

  /// The last event is sent before a request counts as ended.
  bool wait_idle() {
    return scheduler_.wait_idle(
        std::chrono::steady_clock::now() + std::chrono::minutes(1)
    );
  }

  FakeRunner runner_;
  PromptCache cache_;
  Scheduler scheduler_;
  std::thread thread_;
};

/// Holds the generation thread before a step until the test lets it go on.
class Gate {
 public:
  /// Thread: the generation thread. Blocks there, once.
  void hold() {
    if (!held_) {
      held_ = true;
      reached_.set_value();
      released_.get_future().wait();
    }
  }
  bool was_held() const { return held_; }
  /// Until the generation thread is held.
  void wait() { reached_.get_future().wait(); }
  void release() { released_.set_value(); }

 private:
  bool held_ = false;  // of the generation thread
  std::promise<void> reached_;
  std::promise<void> released_;
};

}  // namespace afterglow
