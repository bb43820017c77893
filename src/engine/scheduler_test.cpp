#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "engine/scheduler_fixture.h"

namespace afterglow {
namespace {

TEST(Scheduler, AnswersAreTheModels) {
  Bench bench;
  bench.run();
  for (std::size_t n : {1, 2, 31, 255, 256, 257, 700}) {
    Tokens prompt = random_tokens(n, 1);
    auto sink = bench.ask(prompt, 20);
    EXPECT_EQ(sink->tokens(), FakeRunner::answer(prompt, 20)) << n;
    EXPECT_EQ(sink->finished()->reason, FinishReason::kLength);
    Timings timings = sink->finished()->timings;
    EXPECT_EQ(timings.cache_n + timings.prompt_n, n);
    EXPECT_EQ(timings.predicted_n, 20u);
  }
}

TEST(Scheduler, NextTurnReusesPromptAndAnswer) {
  Bench bench;
  bench.run();
  Tokens first = random_tokens(700, 1);
  Tokens answer = bench.ask(first, 20)->tokens();
  Tokens second = first + answer + random_tokens(50, 2);
  std::size_t before = bench.runner_.computed_tokens;
  auto sink = bench.ask(second, 5);
  EXPECT_EQ(sink->tokens(), FakeRunner::answer(second, 5));
  // The last token of an answer was never fed back, so it has no KV.
  EXPECT_EQ(sink->finished()->timings.cache_n, 719u);
  EXPECT_EQ(sink->finished()->timings.cache_ram_n, 719u);
  EXPECT_EQ(bench.runner_.computed_tokens - before, 51u + 4u);
}

TEST(Scheduler, DivergenceInsideAPageReusesUpToIt) {
  Bench bench;
  bench.run();
  Tokens shared = random_tokens(300, 1);
  bench.ask(shared + random_tokens(300, 2), 4);
  Tokens other = shared + Tokens{96} + random_tokens(299, 3);
  auto sink = bench.ask(other, 4);
  EXPECT_EQ(sink->tokens(), FakeRunner::answer(other, 4));
  EXPECT_GE(sink->finished()->timings.cache_n, 300u);
  EXPECT_LE(sink->finished()->timings.cache_n, 301u);
}

TEST(Scheduler, ExactResendComputesOneToken) {
  Bench bench;
  bench.run();
  for (std::size_t n : {300, 512}) {
    Tokens prompt = random_tokens(n, 5);
    Tokens answer = bench.ask(prompt, 3)->tokens();
    auto sink = bench.ask(prompt, 3);
    EXPECT_EQ(sink->tokens(), answer);
    EXPECT_EQ(sink->finished()->timings.cache_n, n - 1);
    EXPECT_EQ(sink->finished()->timings.prompt_n, 1u);
  }
}

TEST(Scheduler, ShortMatchesAreComputedAgain) {
  Bench bench;
  bench.run();
  Tokens shared = random_tokens(31, 1);
  bench.ask(shared + Tokens{1, 2, 3}, 1);
  auto sink = bench.ask(shared + Tokens{4, 5, 6}, 1);
  EXPECT_EQ(sink->finished()->timings.cache_n, 0u);
}

TEST(Scheduler, StopTokenEndsWithoutBeingSent) {
  Bench bench;
  bench.run();
  Tokens prompt = random_tokens(40, 1);
  Tokens answer = FakeRunner::answer(prompt, 10);
  GenerationRequest request;
  request.prompt = prompt;
  request.stop_tokens = {answer[4]};
  auto sink = std::make_shared<Collector>();
  request.sink = sink;
  ASSERT_TRUE(bench.scheduler_.submit(request).ok());
  ASSERT_TRUE(sink->wait());
  Tokens expected;
  for (Token token : answer) {
    if (token == answer[4]) {
      break;
    }
    expected.push_back(token);
  }
  EXPECT_EQ(sink->tokens(), expected);
  EXPECT_EQ(sink->finished()->reason, FinishReason::kStop);
}

TEST(Scheduler, BadRequestsAreRefusedByName) {
  Bench bench;
  bench.run();
  auto sink = std::make_shared<Collector>();
  auto code = [&](Tokens prompt, std::size_t max_tokens) {
    return bench.submit(std::move(prompt), max_tokens, sink).error().code;
  };
  EXPECT_EQ(code({}, 1), Code::kInvalidArgument);
  EXPECT_EQ(code({-1}, 1), Code::kInvalidArgument);
  EXPECT_EQ(code({97}, 1), Code::kInvalidArgument);
  EXPECT_EQ(code({1}, 0), Code::kInvalidArgument);
  EXPECT_EQ(code(random_tokens(8192, 1), 1), Code::kInvalidArgument);
  EXPECT_EQ(bench.scheduler_.load().running, 0u);
}

TEST(Scheduler, AnswerEndsAtTheContext) {
  Bench bench;
  bench.run();
  auto sink = bench.ask(random_tokens(8190, 1), 100);
  EXPECT_EQ(sink->tokens().size(), 2u);
  EXPECT_EQ(sink->finished()->reason, FinishReason::kLength);
}

TEST(Scheduler, ConcurrentClientsGetWhatEachWouldGetAlone) {
  Bench bench;
  Tokens shared = random_tokens(600, 1);
  std::vector<Tokens> prompts;
  std::vector<std::shared_ptr<Collector>> sinks;
  for (std::uint32_t i = 0; i < 24; ++i) {
    Tokens own = random_tokens(1 + 37 * i % 400, 100 + i);
    prompts.push_back(i % 3 == 0 ? own : shared + own);
    sinks.push_back(std::make_shared<Collector>());
  }
  bench.run();
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    clients.emplace_back([&, i] {
      ASSERT_TRUE(bench.submit(prompts[i], 30, sinks[i]).ok());
      ASSERT_TRUE(sinks[i]->wait());
    });
  }
  for (std::thread& client : clients) {
    client.join();
  }
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    EXPECT_EQ(sinks[i]->tokens(), FakeRunner::answer(prompts[i], 30)) << i;
  }
}

TEST(Scheduler, EqualPromptsAtOnceCostOnePrefill) {
  Bench bench;
  Tokens prompt = random_tokens(3000, 1);
  std::vector<std::shared_ptr<Collector>> sinks;
  for (int i = 0; i < 8; ++i) {
    sinks.push_back(std::make_shared<Collector>());
    ASSERT_TRUE(bench.submit(prompt, 4, sinks.back()).ok());
  }
  bench.run();
  for (const auto& sink : sinks) {
    ASSERT_TRUE(sink->wait());
    EXPECT_EQ(sink->tokens(), FakeRunner::answer(prompt, 4));
  }
  // One whole prompt and the last token of each other one.
  EXPECT_EQ(bench.runner_.computed_tokens, 3000u + 7 + 8 * 3);
}

TEST(Scheduler, CancelDuringPrefillKeepsWhatWasRead) {
  Bench bench;
  Tokens prompt = random_tokens(4000, 1);
  std::promise<void> reached;
  std::promise<void> go_on;
  std::shared_future<void> may_go(go_on.get_future());
  int steps = 0;
  bench.runner_.before_step = [&](auto) -> Status {
    if (++steps == 20) {
      reached.set_value();
      may_go.wait();
    }
    return {};
  };
  auto sink = std::make_shared<Collector>();
  bench.run();
  Result<RequestId> id = bench.submit(prompt, 10, sink);
  ASSERT_TRUE(id.ok());
  reached.get_future().wait();
  bench.scheduler_.cancel(*id);
  go_on.set_value();
  ASSERT_TRUE(sink->wait());
  EXPECT_EQ(sink->finished()->reason, FinishReason::kCancelled);
  std::size_t computed = bench.runner_.computed_tokens;
  EXPECT_LT(computed, 4000u);

  auto again = bench.ask(prompt, 10);
  EXPECT_EQ(again->tokens(), FakeRunner::answer(prompt, 10));
  EXPECT_EQ(again->finished()->timings.cache_n, computed);
}

TEST(Scheduler, DepartedClientStopsTheWork) {
  Bench bench;
  bench.run();
  auto sink = std::make_shared<Collector>();
  sink->leave_after(3);
  Tokens prompt = random_tokens(50, 1);
  ASSERT_TRUE(bench.submit(prompt, 5000, sink).ok());
  ASSERT_TRUE(bench.scheduler_.wait_idle(
      std::chrono::steady_clock::now() + std::chrono::minutes(1)
  ));
  EXPECT_EQ(sink->tokens().size(), 3u);
  EXPECT_FALSE(sink->finished().has_value());
}

TEST(Scheduler, FailingStepFailsOnlyItsCause) {
  Bench bench;
  constexpr Token kPoison = 96;
  bench.runner_.before_step = [&](std::span<const StepItem> items) -> Status {
    for (const StepItem& item : items) {
      for (Token token : item.tokens) {
        if (token == kPoison && item.kv->length() < 100) {
          return Error{Code::kInternal, "poisoned"};
        }
      }
    }
    return {};
  };
  auto innocent = std::make_shared<Collector>();
  auto guilty = std::make_shared<Collector>();
  Tokens good(90, 1);
  Tokens bad = Tokens(40, 2) + Tokens{kPoison};
  ASSERT_TRUE(bench.submit(good, 200, innocent).ok());
  ASSERT_TRUE(bench.submit(bad, 5, guilty).ok());
  bench.run();
  ASSERT_TRUE(guilty->wait());
  ASSERT_TRUE(guilty->failed().has_value());
  EXPECT_EQ(guilty->failed()->error.message, "poisoned");
  ASSERT_TRUE(innocent->wait());
  EXPECT_EQ(innocent->tokens(), FakeRunner::answer(good, 200));
}

TEST(Scheduler, FullQueueIsOverloaded) {
  SchedulerOptions options;
  options.decode_concurrency = 1;
  options.queue_limit = 2;
  Bench bench(options);
  std::vector<std::shared_ptr<Collector>> sinks;
  for (int i = 0; i < 3; ++i) {
    sinks.push_back(std::make_shared<Collector>());
    ASSERT_TRUE(bench.submit({1, 2, i}, 2, sinks.back()).ok());
  }
  auto refused = bench.submit({1}, 2, std::make_shared<Collector>());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kOverloaded);
  bench.run();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(sinks[i]->wait());
    EXPECT_EQ(sinks[i]->tokens(), FakeRunner::answer({1, 2, i}, 2));
  }
}

TEST(Scheduler, StopEndsEverything) {
  Bench bench;
  std::vector<std::shared_ptr<Collector>> sinks;
  for (int i = 0; i < 5; ++i) {
    sinks.push_back(std::make_shared<Collector>());
    ASSERT_TRUE(bench.submit(random_tokens(50, i), 5000, sinks.back()).ok());
  }
  bench.run();
  ASSERT_TRUE(sinks[0]->wait_for_tokens(3));
  bench.scheduler_.stop();
  for (const auto& sink : sinks) {
    ASSERT_TRUE(sink->wait());
    EXPECT_EQ(sink->finished()->reason, FinishReason::kCancelled);
  }
  auto late = bench.submit({1}, 1, std::make_shared<Collector>());
  EXPECT_EQ(late.error().code, Code::kUnavailable);
}

TEST(Scheduler, UncachedRequestLeavesNothing) {
  Bench bench;
  bench.run();
  GenerationRequest request;
  request.prompt = random_tokens(600, 1);
  request.max_tokens = 4;
  request.cache_read = false;
  request.cache_store = false;
  auto sink = std::make_shared<Collector>();
  request.sink = sink;
  ASSERT_TRUE(bench.scheduler_.submit(request).ok());
  ASSERT_TRUE(sink->wait());
  EXPECT_EQ(sink->tokens(), FakeRunner::answer(request.prompt, 4));
  EXPECT_EQ(bench.cache_.stats().blocks, 0u);
  EXPECT_EQ(bench.ask(request.prompt, 4)->finished()->timings.cache_n, 0u);
}

TEST(Scheduler, TasksRunOnTheGenerationThreadInOrderWhileIdle) {
  Bench bench;
  bench.run();
  std::vector<int> order;
  std::promise<std::thread::id> ran_on;
  EXPECT_TRUE(bench.scheduler_.post([&](Runner&) { order.push_back(1); }));
  EXPECT_TRUE(bench.scheduler_.post([&](Runner& runner) {
    EXPECT_EQ(&runner, &bench.runner_);
    order.push_back(2);
    ran_on.set_value(std::this_thread::get_id());
  }));
  EXPECT_EQ(ran_on.get_future().get(), bench.thread_.get_id());
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(Scheduler, TasksRunBetweenTheStepsOfARequestAndChangeNothing) {
  Bench bench;
  std::promise<void> first_step;
  bool told = false;
  bench.runner_.before_step = [&](std::span<const StepItem>) -> Status {
    if (!std::exchange(told, true)) {
      first_step.set_value();
    }
    return {};
  };
  bench.run();
  Tokens prompt = random_tokens(600, 1);
  auto sink = std::make_shared<Collector>();
  ASSERT_TRUE(bench.submit(prompt, 400, sink).ok());
  first_step.get_future().wait();
  std::promise<void> done;
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(bench.scheduler_.post([&, i](Runner& runner) {
      // A task may compute with a KV of its own.
      std::unique_ptr<KvState> kv = runner.new_kv();
      std::vector<float> logits(runner.vocab_size());
      Tokens tokens = {1, 2, 3};
      StepItem item{kv.get(), tokens, logits};
      std::atomic<bool> cancel{false};
      EXPECT_TRUE(runner.step(std::span(&item, 1), cancel).ok());
      if (i == 49) {
        done.set_value();
      }
    }));
  }
  done.get_future().wait();
  ASSERT_TRUE(sink->wait());
  EXPECT_EQ(sink->tokens(), FakeRunner::answer(prompt, 400));
}

TEST(Scheduler, StopDestroysTasksThatHaveNotRun) {
  Bench bench;
  bench.run();
  std::promise<void> busy;
  std::promise<void> go;
  ASSERT_TRUE(bench.scheduler_.post([&](Runner&) {
    busy.set_value();
    go.get_future().wait();
  }));
  busy.get_future().wait();
  auto ran = std::make_shared<bool>(false);
  std::weak_ptr<bool> alive = ran;
  ASSERT_TRUE(bench.scheduler_.post([ran](Runner&) { *ran = true; }));
  bench.scheduler_.stop();
  EXPECT_FALSE(bench.scheduler_.post([ran](Runner&) { *ran = true; }));
  go.set_value();
  bench.thread_.join();
  EXPECT_FALSE(*ran);
  ran.reset();
  EXPECT_TRUE(alive.expired());
}

}  // namespace
}  // namespace afterglow
