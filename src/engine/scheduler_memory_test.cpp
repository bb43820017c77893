#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/human_bytes.h"
#include "engine/scheduler_fixture.h"

// The system may have no memory left wherever some is asked for: that costs
// one request, not all. And what is accounted is neither less nor more than
// what is taken.

namespace afterglow {
namespace {

const std::size_t kPageBytes = FakeRunner().layout().page_bytes();

SchedulerOptions limited_to(std::uint64_t bytes) {
  SchedulerOptions options;
  options.memory_limit_bytes = bytes;
  return options;
}

/// Throws the first time that it is called.
std::function<void()> fail_once() {
  return [failed = false]() mutable {
    if (!std::exchange(failed, true)) {
      throw std::bad_alloc();
    }
  };
}

void expect_no_memory(Collector& sink) {
  ASSERT_TRUE(sink.wait());
  ASSERT_TRUE(sink.failed());
  EXPECT_EQ(sink.failed()->error.code, Code::kExhausted);
}

void expect_answer(Collector& sink, const Tokens& prompt, std::size_t count) {
  ASSERT_TRUE(sink.wait());
  EXPECT_EQ(sink.tokens(), FakeRunner::answer(prompt, count));
}

void expect_alive(Bench& bench) {
  expect_answer(*bench.ask({7, 8, 9}, 3), {7, 8, 9}, 3);
  ASSERT_TRUE(bench.wait_idle());
  EXPECT_TRUE(bench.scheduler_.health().ok());
}

TEST(SchedulerMemory, WithoutMemoryToBeginARequestFailsAlone) {
  Bench bench;
  bench.run();
  Tokens known = random_tokens(600, 1);
  bench.ask(known, 2);
  bench.runner_.before_restore = fail_once();
  expect_no_memory(*bench.ask(known, 2));
  expect_answer(*bench.ask(known, 2), known, 2);
  expect_alive(bench);
  EXPECT_EQ(bench.scheduler_.counters().failed, 1u);
}

TEST(SchedulerMemory, WithoutMemoryToEndACancelledRequestFailsAlone) {
  Bench bench;
  bench.runner_.before_seal = fail_once();
  RequestId id = 0;
  bench.runner_.before_step = [&](std::span<const StepItem> items) -> Status {
    if (items[0].kv->length() == 60) {
      bench.scheduler_.cancel(id);  // the step, too: the next round ends it
    }
    return {};
  };
  auto sink = std::make_shared<Collector>();
  id = *bench.submit(random_tokens(50, 1), 100, sink);
  bench.run();
  expect_no_memory(*sink);
  expect_alive(bench);
}

TEST(SchedulerMemory, WithoutMemoryToBorrowARequestFailsAlone) {
  Bench bench;
  Tokens prompt = random_tokens(700, 1);
  Gate gate;
  bench.runner_.before_step = [&](std::span<const StepItem> items) -> Status {
    if (items[0].kv->length() == 703) {
      gate.hold();
    }
    return {};
  };
  auto lender = std::make_shared<Collector>();
  ASSERT_TRUE(bench.submit(prompt, 30, lender).ok());
  bench.run();
  gate.wait();
  bench.runner_.before_seal = fail_once();
  auto poor = std::make_shared<Collector>();
  auto next = std::make_shared<Collector>();
  ASSERT_TRUE(bench.submit(prompt, 30, poor).ok());
  ASSERT_TRUE(bench.submit(prompt, 30, next).ok());
  gate.release();
  expect_no_memory(*poor);
  expect_answer(*next, prompt, 30);
  expect_answer(*lender, prompt, 30);
  expect_alive(bench);
}

TEST(SchedulerMemory, WhoCannotEvenBeToldOfTheEndKeepsNobodyElseFromIt) {
  class MuteSink : public Collector {
   public:
    bool send(Event event) override {
      if (std::holds_alternative<Failed>(event)) {
        throw std::bad_alloc();
      }
      return Collector::send(std::move(event));
    }
  };
  Bench bench;
  bench.runner_.before_step = [](auto) -> Status { throw std::bad_alloc(); };
  std::vector<std::shared_ptr<Collector>> sinks;
  for (std::uint32_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(
        bench.submit(random_tokens(40, i), 5, std::make_shared<MuteSink>()).ok()
    );
    sinks.push_back(std::make_shared<Collector>());
    ASSERT_TRUE(bench.submit(random_tokens(40, 10 + i), 5, sinks.back()).ok());
  }
  bench.run();
  for (const auto& sink : sinks) {
    ASSERT_TRUE(sink->wait());
    ASSERT_TRUE(sink->failed());
    EXPECT_EQ(sink->failed()->error.code, Code::kInternal);
  }
  EXPECT_TRUE(bench.wait_idle());
  EXPECT_FALSE(bench.scheduler_.health().ok());
}

TEST(SchedulerMemory, IdlePagesAreNotGivenUpWhereThatMakesNoRoom) {
  // Room for what the cache has and one request, not for two.
  Bench bench(limited_to(11 * kPageBytes + (2 * 1100 + 900) * sizeof(Token)));
  bench.run();
  Tokens known = random_tokens(400, 1);
  bench.ask(known, 2);
  ASSERT_TRUE(bench.wait_idle());
  std::uint64_t idle = bench.cache_.stats().ram_bytes;
  ASSERT_EQ(idle, 2 * kPageBytes);
  Gate gate;
  std::optional<std::uint64_t> idle_later;
  bench.runner_.before_step = [&](std::span<const StepItem> items) -> Status {
    std::size_t length = items[0].kv->length();
    if (length == 1010) {
      gate.hold();
    } else if (length == 1050) {
      idle_later = bench.cache_.stats().ram_bytes;
    }
    return {};
  };
  GenerationRequest running;
  running.prompt = random_tokens(1000, 2);
  running.max_tokens = 1000;
  running.cache_store = false;
  auto first = bench.submit(running);
  gate.wait();
  // It needs eight pages, and has to wait for the end of the other one.
  GenerationRequest waits = running;
  waits.prompt = random_tokens(1100, 3);
  waits.max_tokens = 900;
  auto second = bench.submit(waits);
  gate.release();
  expect_answer(*first, running.prompt, 1000);
  expect_answer(*second, waits.prompt, 900);
  EXPECT_EQ(idle_later, idle);
  EXPECT_EQ(bench.ask(known, 2)->finished()->timings.cache_n, 399u);
}

TEST(SchedulerMemory, AFrozenTailCountsUntilItWasCopied) {
  FakeRunner runner;
  PromptCache cache(kPageBytes, {}, false);
  GenerationRequest request;
  request.prompt = random_tokens(300, 1);
  request.max_tokens = 400;
  request.sink = std::make_shared<Collector>();
  Sequence sequence(1, request, BlockId{});
  sequence.begin(runner, cache, {}, 0);
  std::atomic<bool> cancel{false};
  auto step = [&] {
    StepItem item = sequence.next(1000);
    EXPECT_TRUE(runner.step(std::span(&item, 1), cancel).ok());
    return item;
  };
  StepItem item = step();
  EXPECT_EQ(sequence.pages_to_come(), 1u);
  Lent lent = sequence.lend(300);
  EXPECT_EQ(sequence.pages_to_come(), 2u);
  ASSERT_FALSE(sequence.advance(item));
  EXPECT_EQ(sequence.pages_to_come(), 2u);
  std::size_t pages = runner.pool().live_pages();
  item = step();
  EXPECT_EQ(runner.pool().live_pages(), pages + 1);
  EXPECT_EQ(sequence.pages_to_come(), 1u);
  ASSERT_FALSE(sequence.advance(item));
  EXPECT_EQ(sequence.pages_to_come(), 1u);
}

TEST(SchedulerMemory, CopiesOfPagesCountBeforeAnybodyWaits) {
  // Pages are copies beside the arrays of a sequence, if the cache keeps any.
  GenerationRequest request;
  request.prompt = random_tokens(4 * kPageTokens - 100, 1);
  request.max_tokens = 100;
  const std::size_t tokens =
      (2 * request.prompt.size() + request.max_tokens) * sizeof(Token);
  SchedulerOptions options = limited_to(6 * kPageBytes + tokens);
  options.kv_outside_pool = true;
  Bench bench(options);  // no thread: nothing is queued
  request.sink = std::make_shared<Collector>();
  auto refused = bench.scheduler_.submit(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kExhausted);
  EXPECT_NE(
      refused.error().message.find(human_bytes(8 * kPageBytes + tokens)),
      std::string::npos
  ) << refused.error().message;
  request.cache_store = false;
  EXPECT_TRUE(bench.scheduler_.submit(request).ok());
}

TEST(SchedulerMemory, HistoriesAreBlamedOnlyWherePagesAreInUse) {
  // The prompts that wait leave too little for each but the last one.
  std::size_t bytes = kPageBytes + (2 * 200 + 10) * sizeof(Token);
  Bench bench(limited_to(bytes));
  auto first = std::make_shared<Collector>();
  auto last = std::make_shared<Collector>();
  ASSERT_TRUE(bench.submit(random_tokens(200, 1), 10, first).ok());
  ASSERT_TRUE(bench.submit(random_tokens(200, 2), 10, last).ok());
  bench.run();
  expect_no_memory(*first);
  std::string text = first->failed()->error.message;
  EXPECT_EQ(text.find("histories"), std::string::npos) << text;
  EXPECT_NE(
      text.find(human_bytes(bytes - 200 * sizeof(Token))), std::string::npos
  ) << text;
  expect_answer(*last, random_tokens(200, 2), 10);
}

}  // namespace
}  // namespace afterglow
