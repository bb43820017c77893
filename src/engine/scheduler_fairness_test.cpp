#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/scheduler_fixture.h"

// Who takes part in which step.

namespace afterglow {
namespace {

struct Part {
  const KvState* kv;
  std::size_t length;  // before the step
  std::size_t tokens;
};
using Steps = std::vector<std::vector<Part>>;

/// What each step computes. Read it when the thread has nothing to do.
class StepLog {
 public:
  explicit StepLog(FakeRunner& runner) {
    runner.before_step = [this](std::span<const StepItem> items) -> Status {
      steps_.emplace_back();
      for (const StepItem& item : items) {
        steps_.back().push_back({item.kv, item.kv->length(), item.tokens.size()}
        );
      }
      return before ? before(steps_.back()) : Status();
    };
  }

  const Steps& steps() const { return steps_; }

  std::function<Status(const std::vector<Part>&)> before;

 private:
  Steps steps_;
};

GenerationRequest request_of(
    const std::string& client, Tokens prompt, std::size_t max_tokens
) {
  GenerationRequest request;
  request.client = client;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  return request;
}

TEST(SchedulerFairness, ALongPromptNeverKeepsOthersFromAStep) {
  Bench bench;
  StepLog log(bench.runner_);
  Gate gate;
  log.before = [&](const std::vector<Part>& parts) -> Status {
    if (parts[0].length == 55) {
      gate.hold();
    }
    return {};
  };
  bench.run();
  auto answering = bench.submit(request_of("a", random_tokens(50, 1), 100));
  gate.wait();
  auto reading = bench.submit(request_of("b", random_tokens(6000, 2), 2));
  gate.release();
  ASSERT_TRUE(answering->wait());
  ASSERT_TRUE(reading->wait());
  ASSERT_TRUE(bench.wait_idle());
  EXPECT_EQ(answering->tokens(), FakeRunner::answer(random_tokens(50, 1), 100));
  const KvState* kv = log.steps()[0][0].kv;
  std::size_t length = 0;
  std::size_t together = 0;
  for (const std::vector<Part>& step : log.steps()) {
    auto part = std::find_if(step.begin(), step.end(), [&](const Part& one) {
      return one.kv == kv;
    });
    if (length < 149) {
      // One more token in every step, whatever the other one reads.
      ASSERT_NE(part, step.end());
      EXPECT_EQ(part->length, length);
      length += part->tokens;
    }
    std::size_t tokens = 0;
    for (const Part& one : step) {
      tokens += one.tokens;
    }
    EXPECT_LE(tokens, 128u + 1);
    together += step.size() == 2 ? 1 : 0;
  }
  EXPECT_GE(together, 40u);
}

TEST(SchedulerFairness, AShortPromptIsReadBesideALongOneAtOnce) {
  Bench bench;
  StepLog log(bench.runner_);
  Gate gate;
  log.before = [&](const std::vector<Part>& parts) -> Status {
    if (parts[0].length >= 500) {
      gate.hold();
    }
    return {};
  };
  bench.run();
  auto large = bench.submit(request_of("a", random_tokens(7000, 1), 1));
  gate.wait();
  auto small = bench.submit(request_of("a", random_tokens(60, 2), 1));
  std::size_t before = log.steps().size();
  gate.release();
  ASSERT_TRUE(small->wait());
  ASSERT_TRUE(large->wait());
  ASSERT_TRUE(bench.wait_idle());
  const KvState* kv = log.steps()[0][0].kv;
  const std::vector<Part>& next = log.steps()[before];
  ASSERT_EQ(next.size(), 2u);
  for (const Part& part : next) {
    // The fake is fast: 128 tokens a step.
    EXPECT_EQ(part.tokens, part.kv == kv ? 68u : 60u);
  }
}

TEST(SchedulerFairness, NoStepReadsMoreThanItMay) {
  for (std::size_t most : {1, 5, 300}) {
    SchedulerOptions options;
    options.pacing.max_tokens = most;
    Bench bench(options);
    StepLog log(bench.runner_);
    std::vector<std::shared_ptr<Collector>> sinks;
    for (std::uint32_t i = 0; i < 4; ++i) {
      sinks.push_back(bench.submit(request_of("", random_tokens(400, i), 1)));
    }
    bench.run();
    for (std::uint32_t i = 0; i < 4; ++i) {
      ASSERT_TRUE(sinks[i]->wait());
      EXPECT_EQ(
          sinks[i]->tokens(), FakeRunner::answer(random_tokens(400, i), 1)
      );
    }
    ASSERT_TRUE(bench.wait_idle());
    std::size_t largest = 0;
    for (const std::vector<Part>& step : log.steps()) {
      std::size_t tokens = 0;
      for (const Part& part : step) {
        tokens += part.tokens;
      }
      largest = std::max(largest, tokens);
    }
    EXPECT_EQ(largest, most);
  }
}

/// Notes whose answers end, in order.
class Ending : public EventSink {
 public:
  Ending(std::vector<std::string>& order, std::string name)
      : order_(order), name_(std::move(name)) {}
  bool send(Event event) override {
    if (std::holds_alternative<Finished>(event)) {
      order_.push_back(name_);
    }
    return true;
  }

 private:
  std::vector<std::string>& order_;  // of the generation thread
  std::string name_;
};

TEST(SchedulerFairness, FiftyRequestsOfOneDoNotStarveAnother) {
  SchedulerOptions options;
  options.decode_concurrency = 2;
  Bench bench(options);
  std::vector<std::string> order;
  auto submit = [&](const std::string& client, std::uint32_t seed) {
    GenerationRequest request = request_of(client, random_tokens(40, seed), 5);
    request.sink = std::make_shared<Ending>(order, client);
    ASSERT_TRUE(bench.scheduler_.submit(std::move(request)).ok());
  };
  for (std::uint32_t i = 0; i < 50; ++i) {
    submit("many", i);
  }
  for (std::uint32_t i = 0; i < 3; ++i) {
    submit("few", 100 + i);
  }
  bench.run();
  ASSERT_TRUE(bench.wait_idle());
  ASSERT_EQ(order.size(), 53u);
  // One place for each client, all the time that both have requests.
  EXPECT_EQ(std::count(order.begin(), order.begin() + 6, "few"), 3);
}

}  // namespace
}  // namespace afterglow
