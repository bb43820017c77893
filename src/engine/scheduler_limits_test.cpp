#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/human_bytes.h"
#include "engine/scheduler_fixture.h"

// Memory is accounted before it is taken, and what goes wrong in spite of that
// is told.

namespace afterglow {
namespace {

const std::size_t kPageBytes = FakeRunner().layout().page_bytes();

std::size_t bytes_for(std::size_t prompt, std::size_t max_tokens) {
  return pages_for(prompt + max_tokens) * kPageBytes +
         (2 * prompt + max_tokens) * sizeof(Token);
}

SchedulerOptions limited_to(std::size_t bytes) {
  SchedulerOptions options;
  options.memory_limit_bytes = bytes;
  return options;
}

TEST(SchedulerLimits, WhatCanNeverFitIsRefusedAtOnceWithItsSize) {
  std::size_t bytes = bytes_for(600, 10);
  Bench bench(limited_to(bytes));  // no thread: nothing is queued
  auto sink = std::make_shared<Collector>();
  auto refused = bench.submit(random_tokens(601, 1), 10, sink);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kExhausted);
  for (const std::string& part :
       {"of 601 tokens and an answer of up to 10 need " +
            human_bytes(bytes_for(601, 10)),
        "limit leaves " + human_bytes(bytes)}) {
    EXPECT_NE(refused.error().message.find(part), std::string::npos)
        << refused.error().message;
  }
  EXPECT_EQ(bench.scheduler_.load().queued, 0u);
  EXPECT_TRUE(bench.submit(random_tokens(600, 1), 10, sink).ok());
}

TEST(SchedulerLimits, ManyLongRequestsStayBelowTheLimit) {
  std::size_t limit = 2 * bytes_for(2000, 100) + 40 * 2000 * sizeof(Token);
  Bench bench(limited_to(limit));
  std::size_t most = 0;
  std::size_t most_at_once = 0;
  bench.runner_.before_step = [&](std::span<const StepItem> items) -> Status {
    most = std::max(most, bench.runner_.pool().live_pages() * kPageBytes);
    most_at_once = std::max(most_at_once, items.size());
    return {};
  };
  std::vector<Tokens> prompts;
  std::vector<std::shared_ptr<Collector>> sinks;
  Tokens shared = random_tokens(600, 1);
  for (std::uint32_t i = 0; i < 40; ++i) {
    prompts.push_back(shared + random_tokens(i * 35, 10 + i));
    sinks.push_back(std::make_shared<Collector>());
    ASSERT_TRUE(bench.submit(prompts.back(), 100, sinks.back()).ok());
  }
  bench.run();
  for (std::size_t i = 0; i < sinks.size(); ++i) {
    ASSERT_TRUE(sinks[i]->wait());
    EXPECT_EQ(sinks[i]->tokens(), FakeRunner::answer(prompts[i], 100)) << i;
  }
  EXPECT_LE(most, limit);
  EXPECT_GT(most, 40 * kPageBytes);
  EXPECT_GE(most_at_once, 2u);
}

TEST(SchedulerLimits, RoomIsNotMadeOfWhatTheRequestReuses) {
  // Room for its own pages and one more.
  Bench bench(limited_to(bytes_for(1300, 10) + kPageBytes));
  bench.run();
  Tokens prompt = random_tokens(1200, 1);
  bench.ask(prompt, 4);
  bench.ask(random_tokens(200, 2), 4);
  auto again = bench.ask(prompt + random_tokens(100, 3), 10);
  EXPECT_EQ(again->finished()->timings.cache_n, 1200u);
}

TEST(SchedulerLimits, PagesThatAwaitTheWriterAreWaitedFor) {
  Bench bench(limited_to(bytes_for(1000, 10)), {}, /*with_disk=*/true);
  bench.run();
  bench.ask(random_tokens(1000, 1), 2);
  ASSERT_EQ(bench.cache_.stats().dirty_blocks, 4u);
  auto sink = std::make_shared<Collector>();
  Tokens prompt = random_tokens(900, 2);
  ASSERT_TRUE(bench.submit(prompt, 10, sink).ok());
  auto soon = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  auto dirty = bench.cache_.take_dirty(soon, std::chrono::milliseconds(0));
  while (dirty.size() < 4) {
    for (auto& one :
         bench.cache_.take_dirty(soon, std::chrono::milliseconds(0))) {
      dirty.push_back(std::move(one));
    }
  }
  EXPECT_EQ(bench.scheduler_.load().queued, 1u);
  for (const auto& one : dirty) {
    ASSERT_TRUE(bench.cache_.set_durable(one.block->id, 1000));
  }
  dirty.clear();
  ASSERT_TRUE(sink->wait());
  EXPECT_EQ(sink->tokens(), FakeRunner::answer(prompt, 10));
}

TEST(SchedulerLimits, HistoriesInUseCountAndNobodyWaitsForThem) {
  Bench bench(limited_to(bytes_for(1000, 10) + kPageBytes));
  bench.run();
  GenerationRequest request;
  request.prompt = random_tokens(1000, 1);
  request.max_tokens = 2;
  request.return_history = true;
  auto first = bench.submit(std::move(request));
  ASSERT_TRUE(first->wait());
  KvHistoryPtr history = first->finished()->history;
  first.reset();
  auto refused = bench.ask(random_tokens(900, 2), 10);
  ASSERT_TRUE(refused->failed());
  EXPECT_EQ(refused->failed()->error.code, Code::kExhausted);
  history.reset();
  auto sink = bench.ask(random_tokens(900, 2), 10);
  EXPECT_EQ(sink->tokens(), FakeRunner::answer(random_tokens(900, 2), 10));
}

TEST(SchedulerLimits, AStepWithoutMemoryFailsOnlyThoseThatNeedIt) {
  Bench bench;
  bench.runner_.before_step = [&](std::span<const StepItem> items) -> Status {
    for (const StepItem& item : items) {
      if (item.kv->length() >= 500) {
        return Error{Code::kExhausted, "no memory"};
      }
    }
    return {};
  };
  auto large = std::make_shared<Collector>();
  auto small = std::make_shared<Collector>();
  ASSERT_TRUE(bench.submit(random_tokens(900, 1), 5, large).ok());
  ASSERT_TRUE(bench.submit(random_tokens(100, 2), 300, small).ok());
  bench.run();
  ASSERT_TRUE(large->wait());
  ASSERT_TRUE(large->failed());
  EXPECT_EQ(large->failed()->error.code, Code::kExhausted);
  ASSERT_TRUE(small->wait());
  EXPECT_EQ(small->tokens(), FakeRunner::answer(random_tokens(100, 2), 300));
  EXPECT_TRUE(bench.scheduler_.health().ok());
}

/// Has no memory for its third token.
class PoorSink : public Collector {
 public:
  bool send(Event event) override {
    if (std::holds_alternative<TokenOut>(event) && ++tokens_ == 3) {
      throw std::bad_alloc();
    }
    return Collector::send(std::move(event));
  }

 private:
  int tokens_ = 0;
};

TEST(SchedulerLimits, WithoutMemoryForItsAnswerARequestFailsAlone) {
  Bench bench;
  auto poor = std::make_shared<PoorSink>();
  auto other = std::make_shared<Collector>();
  ASSERT_TRUE(bench.submit(random_tokens(50, 1), 10, poor).ok());
  ASSERT_TRUE(bench.submit(random_tokens(50, 2), 10, other).ok());
  bench.run();
  ASSERT_TRUE(poor->wait());
  ASSERT_TRUE(poor->failed());
  EXPECT_EQ(poor->failed()->error.code, Code::kExhausted);
  EXPECT_EQ(poor->tokens().size(), 2u);
  ASSERT_TRUE(other->wait());
  EXPECT_EQ(other->tokens(), FakeRunner::answer(random_tokens(50, 2), 10));
  EXPECT_TRUE(bench.scheduler_.health().ok());
}

TEST(SchedulerLimits, WhenTheThreadEndsEveryoneIsTold) {
  Bench bench;
  int steps = 0;
  bench.runner_.before_step = [&](auto) -> Status {
    if (++steps == 5) {
      throw std::runtime_error("the test's own");
    }
    return {};
  };
  std::vector<std::shared_ptr<Collector>> sinks;
  for (std::uint32_t i = 0; i < 40; ++i) {  // more than can run at once
    sinks.push_back(std::make_shared<Collector>());
    ASSERT_TRUE(bench.submit(random_tokens(400, i), 5, sinks.back()).ok());
  }
  EXPECT_TRUE(bench.scheduler_.health().ok());
  bench.run();
  for (const auto& sink : sinks) {
    ASSERT_TRUE(sink->wait());
    ASSERT_TRUE(sink->failed());
    EXPECT_EQ(sink->failed()->error.code, Code::kInternal);
  }
  ASSERT_TRUE(bench.wait_idle());
  Status health = bench.scheduler_.health();
  ASSERT_FALSE(health.ok());
  EXPECT_EQ(health.error().code, Code::kUnavailable);
  EXPECT_NE(health.error().message.find("the test's own"), std::string::npos);
  auto late = bench.submit({1, 2}, 1, std::make_shared<Collector>());
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, Code::kUnavailable);
  EXPECT_FALSE(bench.scheduler_.post([](Runner&) {}));
  EXPECT_EQ(bench.scheduler_.history(1), nullptr);
}

// One whose steps wait at the gate, where the first of them is by now.
std::shared_ptr<Collector> submit_held(Bench& bench, Gate& gate) {
  bench.runner_.before_step = [&](auto) -> Status {
    gate.hold();
    return {};
  };
  bench.run();
  auto sink = std::make_shared<Collector>();
  const bool submitted = bench.submit({1, 2, 3}, 2, sink).ok();
  EXPECT_TRUE(submitted);
  if (submitted) gate.wait();
  return sink;
}

TEST(SchedulerLimits, AStepThatDoesNotEndIsNoHealth) {
  SchedulerOptions options;
  options.longest_step = std::chrono::seconds(1);
  Bench bench(options);
  Gate gate;
  auto sink = submit_held(bench, gate);
  auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (bench.scheduler_.health().ok() &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(bench.scheduler_.health().ok());
  gate.release();
  ASSERT_TRUE(sink->wait());
  ASSERT_TRUE(bench.wait_idle());
  EXPECT_TRUE(bench.scheduler_.health().ok());
}

TEST(SchedulerLimits, WhenToTryAgainIsAsLongAsNothingHasEnded) {
  Bench bench;
  Gate gate;
  auto sink = submit_held(bench, gate);
  EXPECT_EQ(bench.scheduler_.retry_after(), std::chrono::seconds(1));
  auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (bench.scheduler_.retry_after() < std::chrono::seconds(2) &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_GE(bench.scheduler_.retry_after(), std::chrono::seconds(2));
  gate.release();
  ASSERT_TRUE(bench.wait_idle());
  // So long it took to end, and so long it may take again.
  EXPECT_GE(bench.scheduler_.retry_after(), std::chrono::seconds(2));
}

TEST(SchedulerLimits, OneClientLeavesPlacesForOthers) {
  SchedulerOptions options;
  options.queue_limit = 6;
  options.decode_concurrency = 2;
  Bench bench(options);
  auto ask = [&](const std::string& client) {
    GenerationRequest request;
    request.prompt = {1, 2, 3};
    request.max_tokens = 1;
    request.client = client;
    request.sink = std::make_shared<Collector>();
    return bench.scheduler_.submit(std::move(request));
  };
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(ask("greedy").ok());
  }
  auto refused = ask("greedy");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kOverloaded);
  EXPECT_NE(refused.error().message.find("this client"), std::string::npos);
  EXPECT_TRUE(ask("other").ok());
  EXPECT_TRUE(ask("other").ok());
  EXPECT_FALSE(ask("third").ok());
}

}  // namespace
}  // namespace afterglow
