#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/collector.h"
#include "engine/fake_runner.h"
#include "engine/scheduler.h"

namespace afterglow {
namespace {

// Keeps the last logits and can be waited for.
class Chooser : public LogitsSink {
 public:
  bool send_logits(std::vector<float> logits) override {
    std::lock_guard lock(mutex_);
    logits_ = std::move(logits);
    ++count_;
    changed_.notify_all();
    return count_ <= listens_to_;
  }

  // The most likely token of the n-th logits.
  Token wait_for(std::size_t n) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::minutes(1), [&] {
      return count_ >= n;
    }));
    return static_cast<Token>(
        std::max_element(logits_.begin(), logits_.end()) - logits_.begin()
    );
  }
  void listen_to(std::size_t n) { listens_to_ = n; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<float> logits_;
  std::size_t count_ = 0;
  std::size_t listens_to_ = 1000;
};

TokenOut out(Token token) {
  TokenOut result;
  result.token = token;
  return result;
}

class Choosing : public testing::Test {
 protected:
  struct Asked {
    RequestId id = 0;
    std::shared_ptr<Collector> events = std::make_shared<Collector>();
    std::shared_ptr<Chooser> chooser;
  };

  ~Choosing() override {
    scheduler_.stop();
    if (thread_.joinable()) thread_.join();
  }
  void run() {
    thread_ = std::thread([this] { scheduler_.run(); });
  }
  Asked ask(Tokens prompt, bool choose = true, KvHistoryPtr history = {}) {
    Asked asked;
    GenerationRequest request;
    request.prompt = std::move(prompt);
    request.max_tokens = 5;
    request.sink = asked.events;
    request.return_history = true;
    request.history = std::move(history);
    if (choose) {
      asked.chooser = std::make_shared<Chooser>();
      request.logits_sink = asked.chooser;
    }
    auto id = scheduler_.submit(std::move(request));
    EXPECT_TRUE(id.ok());
    asked.id = id.ok() ? *id : 0;
    return asked;
  }

  FakeRunner runner_;
  PromptCache cache_{runner_.layout().page_bytes(), CacheLimits(), false};
  SchedulerOptions options_{.decode_concurrency = 3};
  Scheduler scheduler_{runner_, cache_, nullptr, options_};
  std::thread thread_;
};

TEST_F(Choosing, TheCallersTokensAreTheAnswer) {
  run();
  Tokens prompt = random_tokens(300, 1);
  Asked asked = ask(prompt);
  Tokens chosen;
  for (std::size_t i = 1; i <= 5; ++i) {
    chosen.push_back((asked.chooser->wait_for(i) + 1) % 97);
    scheduler_.choose(asked.id, out(chosen.back()));
  }
  ASSERT_TRUE(asked.events->wait());
  EXPECT_EQ(asked.events->tokens(), chosen);
  EXPECT_EQ(asked.events->finished()->reason, FinishReason::kLength);
  ASSERT_TRUE(scheduler_.wait_idle(
      std::chrono::steady_clock::now() + std::chrono::minutes(1)
  ));
  EXPECT_EQ(scheduler_.counters().generated_tokens, 5u);
  scheduler_.choose(asked.id, out(3));  // it has ended: nothing happens
  EXPECT_EQ(scheduler_.history(asked.id), nullptr);
}

TEST_F(Choosing, ThoseThatWaitTakeNobodysPlace) {
  run();
  std::vector<Asked> waiting;
  for (std::uint32_t i = 0; i < 10; ++i) {
    waiting.push_back(ask(random_tokens(40, i)));
    waiting.back().chooser->wait_for(1);
  }
  Tokens prompt = random_tokens(40, 99);
  Asked other = ask(prompt, /*choose=*/false);
  ASSERT_TRUE(other.events->wait());
  EXPECT_EQ(other.events->tokens(), FakeRunner::answer(prompt, 5));
}

TEST_F(Choosing, AWaitingRequestCanBeCutAndTellsItsHistory) {
  run();
  Tokens prompt = random_tokens(40, 1);
  Asked asked = ask(prompt);
  asked.chooser->wait_for(1);
  KvHistoryPtr so_far = scheduler_.history(asked.id);
  ASSERT_NE(so_far, nullptr);
  EXPECT_EQ(so_far->tokens, prompt);
  scheduler_.cancel(asked.id);
  ASSERT_TRUE(asked.events->wait());
  EXPECT_EQ(asked.events->finished()->reason, FinishReason::kCancelled);
  EXPECT_EQ(asked.events->finished()->history->tokens, prompt);
}

TEST_F(Choosing, NobodyListensEndsIt) {
  run();
  Asked asked = ask(random_tokens(40, 1));
  asked.chooser->wait_for(1);
  asked.chooser->listen_to(1);
  scheduler_.choose(asked.id, out(3));
  ASSERT_TRUE(asked.events->wait());
  EXPECT_EQ(asked.events->finished()->reason, FinishReason::kCancelled);
}

TEST_F(Choosing, StoppingEndsThoseThatWait) {
  run();
  Asked asked = ask(random_tokens(40, 1));
  asked.chooser->wait_for(1);
  scheduler_.stop();
  ASSERT_TRUE(asked.events->wait());
  EXPECT_EQ(asked.events->finished()->history->tokens.size(), 40u);
  thread_.join();
  EXPECT_EQ(scheduler_.history(asked.id), nullptr);
}

TEST_F(Choosing, AFailedRequestTellsWhatHadSucceeded) {
  std::size_t steps = 0;
  runner_.before_step = [&](std::span<const StepItem>) -> Status {
    return ++steps > 3 ? Status(Error{Code::kInternal, "broken"}) : Status();
  };
  run();
  Tokens prompt = random_tokens(40, 1);
  Asked asked = ask(prompt, /*choose=*/false);
  ASSERT_TRUE(asked.events->wait());
  const Failed failed = *asked.events->failed();
  ASSERT_NE(failed.history, nullptr);
  const Tokens& held = failed.history->tokens;
  EXPECT_LT(held.size(), 46u);
  const Tokens all = prompt + FakeRunner::answer(prompt, 5);
  EXPECT_TRUE(std::equal(held.begin(), held.end(), all.begin()));
  // And that can be continued.
  runner_.before_step = nullptr;
  Asked again = ask(prompt, /*choose=*/false, failed.history);
  ASSERT_TRUE(again.events->wait());
  EXPECT_EQ(again.events->tokens(), FakeRunner::answer(prompt, 5));
}

TEST_F(Choosing, AHistoryLongerThanTheCachesMatchIsTaken) {
  run();
  Tokens prompt = random_tokens(60, 1);
  Asked first = ask(Tokens(prompt.begin(), prompt.begin() + 20), false);
  ASSERT_TRUE(first.events->wait());
  KvHistoryPtr history = first.events->finished()->history;
  // The cache knows 25 tokens of the prompt, too few to be used.
  Asked other =
      ask(Tokens(prompt.begin(), prompt.begin() + 25) + random_tokens(9, 7),
          false);
  ASSERT_TRUE(other.events->wait());
  Asked warm = ask(prompt, false, history);
  ASSERT_TRUE(warm.events->wait());
  EXPECT_EQ(warm.events->finished()->timings.cache_n, 20u);
  EXPECT_EQ(warm.events->tokens(), FakeRunner::answer(prompt, 5));
}

}  // namespace
}  // namespace afterglow
