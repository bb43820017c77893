#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/memory_file_system.h"
#include "engine/collector.h"
#include "engine/fake_runner.h"
#include "engine/scheduler.h"

// A seeded request draws the same tokens alone and in company, cold and from
// a cache that outlived its process.

namespace afterglow {
namespace {

constexpr std::size_t kRequests = 8;
constexpr std::size_t kAnswer = 60;

/// What one process has: a model, a cache and, given a disk, a store on it.
class Process {
 public:
  explicit Process(MemoryDisk* disk = nullptr)
      : cache_(runner_.layout().page_bytes(), {}, disk != nullptr) {
    if (disk != nullptr) {
      StoreOptions options;
      options.layout = runner_.layout();
      auto store =
          Store::open(disk->file_system(), options, cache_, runner_.pool());
      CHECK(store.ok());
      store_ = *std::move(store);
    }
    scheduler_ = std::make_unique<Scheduler>(
        runner_, cache_, store_.get(), SchedulerOptions{}
    );
  }
  ~Process() {
    scheduler_->stop();
    if (thread_.joinable()) {
      thread_.join();
    }
    if (store_ != nullptr) {
      store_->flush(std::chrono::steady_clock::now() + std::chrono::minutes(1));
    }
  }

  /// Runs them together: all are queued before the first step.
  std::vector<std::shared_ptr<Collector>> ask(
      std::vector<GenerationRequest> requests
  ) {
    std::vector<std::shared_ptr<Collector>> sinks;
    for (GenerationRequest& request : requests) {
      sinks.push_back(std::make_shared<Collector>());
      request.sink = sinks.back();
      EXPECT_TRUE(scheduler_->submit(std::move(request)).ok());
    }
    if (!thread_.joinable()) {
      thread_ = std::thread([this] { scheduler_->run(); });
    }
    for (const auto& sink : sinks) {
      EXPECT_TRUE(sink->wait());
      EXPECT_TRUE(sink->finished().has_value());
    }
    return sinks;
  }

  FakeRunner runner_;

 private:
  PromptCache cache_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Scheduler> scheduler_;
  std::thread thread_;
};

/// Half of them share a prefix. Hot, so that chance decides: the model's
/// favourite has one in five.
GenerationRequest request_of(std::size_t i) {
  GenerationRequest request;
  Tokens own = random_tokens(20 + 90 * i, 100 + static_cast<unsigned>(i));
  request.prompt = i % 2 == 0 ? random_tokens(600, 1) + own : own;
  request.max_tokens = kAnswer;
  SamplingParams& params = request.sampling;
  params.temperature = 3;
  params.seed = 1000 + i / 2;  // some have one seed and other prompts
  if (i % 3 == 1) {
    params.logit_bias = {{7, 9.5f}, {8, 9.0f}};  // as good as the favourite
    params.xtc_probability = 0.5;
    params.xtc_threshold = 0.1;
    params.top_k = 40;
  }
  if (i % 4 == 3) {
    params.frequency_penalty = 2;
    params.repetition_penalty = 1.3;
  }
  return request;
}

std::vector<GenerationRequest> all_requests() {
  std::vector<GenerationRequest> requests;
  for (std::size_t i = 0; i < kRequests; ++i) {
    requests.push_back(request_of(i));
  }
  return requests;
}

std::vector<Tokens> answers_alone() {
  std::vector<Tokens> answers;
  for (std::size_t i = 0; i < kRequests; ++i) {
    answers.push_back(Process().ask({request_of(i)})[0]->tokens());
  }
  return answers;
}

void expect_answers(
    const std::vector<std::shared_ptr<Collector>>& sinks,
    const std::vector<Tokens>& answers
) {
  for (std::size_t i = 0; i < kRequests; ++i) {
    EXPECT_EQ(sinks[i]->tokens(), answers[i]) << i;
  }
}

TEST(Seed, AnswersAreDrawn) {
  std::vector<Tokens> answers = answers_alone();
  for (std::size_t i = 0; i < kRequests; ++i) {
    GenerationRequest request = request_of(i);
    EXPECT_EQ(answers[i].size(), kAnswer);
    EXPECT_NE(answers[i], FakeRunner::answer(request.prompt, kAnswer)) << i;
    *request.sampling.seed += 1;
    EXPECT_NE(Process().ask({request})[0]->tokens(), answers[i]) << i;
  }
}

TEST(Seed, CompanyChangesNothing) {
  Process process;
  std::size_t most = 0;
  process.runner_.before_step = [&](std::span<const StepItem> items) {
    most = std::max(most, items.size());
    return Status{};
  };
  expect_answers(process.ask(all_requests()), answers_alone());
  EXPECT_GE(most, 2u);
}

// The step's sequences are cut back and run again, each alone.
TEST(Seed, AFailedStepChangesNothing) {
  Process process;
  std::size_t steps = 0;
  process.runner_.before_step = [&](std::span<const StepItem> items) -> Status {
    if (items.size() > 1 && ++steps % 20 == 0) {
      return Error{Code::kInternal, "now and then"};
    }
    return {};
  };
  expect_answers(process.ask(all_requests()), answers_alone());
  EXPECT_GE(steps, 20u);
}

TEST(Seed, AWarmPrefixChangesNothing) {
  std::vector<Tokens> answers = answers_alone();
  MemoryDisk disk;
  {
    Process process(&disk);
    process.ask(all_requests());
    auto again = process.ask(all_requests());
    expect_answers(again, answers);
    for (std::size_t i = 0; i < kRequests; ++i) {
      std::size_t length = request_of(i).prompt.size();
      std::size_t expected = length < 33 ? 0 : length - 1;
      EXPECT_EQ(again[i]->finished()->timings.cache_ram_n, expected) << i;
    }
  }
  Process restarted(&disk);
  auto again = restarted.ask(all_requests());
  expect_answers(again, answers);
  std::size_t from_disk = 0;
  for (const auto& sink : again) {
    from_disk += sink->finished()->timings.cache_disk_n;
  }
  EXPECT_GT(from_disk, 600u);
}

/// Keeps tokens with their log-probabilities.
class TokenSink : public Collector {
 public:
  bool send(Event event) override {
    if (auto* token = std::get_if<TokenOut>(&event)) {
      std::lock_guard lock(mutex_);
      outs_.push_back(*token);
    }
    return Collector::send(std::move(event));
  }
  std::vector<TokenOut> outs() const {
    std::lock_guard lock(mutex_);
    return outs_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<TokenOut> outs_;
};

// As in mlx_lm: of the logits behind bias and penalties, before filters and
// temperature.
TEST(Seed, LogprobsAreOfProcessedLogits) {
  FakeRunner runner;
  PromptCache cache(runner.layout().page_bytes(), {}, /*with_disk=*/false);
  Scheduler scheduler(runner, cache, nullptr, SchedulerOptions{});
  std::thread thread([&] { scheduler.run(); });
  auto sink = std::make_shared<TokenSink>();
  GenerationRequest request;
  request.prompt = random_tokens(10, 3);
  request.max_tokens = 1;
  request.logprobs = true;
  request.top_logprobs = 2;
  request.sampling.temperature = 0.5;
  request.sampling.top_k = 1;
  request.sampling.seed = 1;
  Token favourite = FakeRunner::next_token(request.prompt);
  Token raised = favourite == 5 ? 6 : 5;
  request.sampling.logit_bias = {{raised, 12.0f}};
  request.sink = sink;
  EXPECT_TRUE(scheduler.submit(request).ok());
  EXPECT_TRUE(sink->wait());
  scheduler.stop();
  thread.join();
  ASSERT_EQ(sink->outs().size(), 1u);
  TokenOut out = sink->outs()[0];
  double log_sum = std::log(
      std::exp(12.0) + std::exp(10.0) + double{FakeRunner::kVocab - 2}
  );
  EXPECT_EQ(out.token, raised);
  EXPECT_NEAR(out.logprob, 12 - log_sum, 1e-5);
  ASSERT_EQ(out.top_logprobs.size(), 2u);
  EXPECT_EQ(out.top_logprobs[0].token, raised);
  EXPECT_NEAR(out.top_logprobs[0].logprob, 12 - log_sum, 1e-5);
  EXPECT_EQ(out.top_logprobs[1].token, favourite);
  EXPECT_NEAR(out.top_logprobs[1].logprob, 10 - log_sum, 1e-5);
}

}  // namespace
}  // namespace afterglow
