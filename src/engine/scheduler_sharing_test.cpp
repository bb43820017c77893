#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/scheduler_fixture.h"

// Requests that come while another one reads the same prompt: what is computed
// is counted to the token, and every answer is what it would be alone.

namespace afterglow {
namespace {

GenerationRequest request_for(Tokens prompt, std::size_t max_tokens = 4) {
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  return request;
}

GenerationRequest uncached(Tokens prompt, std::size_t max_tokens = 4) {
  GenerationRequest request = request_for(std::move(prompt), max_tokens);
  request.cache_read = false;
  request.cache_store = false;
  return request;
}

void expect_answer(Collector& sink, const Tokens& prompt, std::size_t count) {
  ASSERT_TRUE(sink.wait());
  EXPECT_EQ(sink.tokens(), FakeRunner::answer(prompt, count));
}

/// A request and one that waits for its prompt, not yet looked at.
struct Followed {
  explicit Followed(std::chrono::milliseconds waits_in_silence)
      : bench(options(waits_in_silence)) {}

  static SchedulerOptions options(std::chrono::milliseconds waits_in_silence) {
    SchedulerOptions options;
    options.waits_in_silence = waits_in_silence;
    return options;
  }

  Tokens prompt = random_tokens(3000, 1);
  Bench bench;
  std::shared_ptr<Collector> first = bench.submit(request_for(prompt));
  std::shared_ptr<Collector> follower = bench.submit(request_for(prompt));
};

TEST(SchedulerSharing, FollowersTakeAllThatTheyShareFromMemory) {
  Bench bench;
  Tokens prompt = random_tokens(3000, 1);
  std::vector<std::shared_ptr<Collector>> sinks;
  for (int i = 0; i < 8; ++i) {
    sinks.push_back(bench.submit(request_for(prompt)));
  }
  bench.run();
  std::size_t computed = 0;
  for (const auto& sink : sinks) {
    expect_answer(*sink, prompt, 4);
    Timings timings = sink->finished()->timings;
    EXPECT_EQ(timings.cache_n + timings.prompt_n, 3000u);
    EXPECT_EQ(timings.cache_ram_n, timings.cache_n);
    computed += timings.prompt_n;
  }
  EXPECT_EQ(computed, 3000u + 7);
  ASSERT_TRUE(bench.wait_idle());
  EngineCounters counters = bench.scheduler_.counters();
  EXPECT_EQ(counters.computed_prompt_tokens, 3000u + 7);
  EXPECT_EQ(counters.ram_prompt_tokens, 7u * 2999);
  EXPECT_EQ(counters.ram_hits, 7u);
}

TEST(SchedulerSharing, FollowersHearHowFarTheirPromptIsRead) {
  Followed both(std::chrono::milliseconds(0));
  std::vector<std::size_t> heard;
  both.bench.runner_.before_step = [&](std::span<const StepItem>) -> Status {
    const Progress progress = both.follower->last_progress();
    EXPECT_EQ(progress.total, 3000u);
    EXPECT_LE(progress.done, both.bench.runner_.computed_tokens);
    heard.push_back(progress.done);
    return {};
  };
  both.bench.run();
  expect_answer(*both.first, both.prompt, 4);
  expect_answer(*both.follower, both.prompt, 4);
  ASSERT_GE(heard.size(), 20u);
  for (std::size_t i = 1; i < 20; ++i) {
    EXPECT_GT(heard[i], heard[i - 1]) << i;
  }
}

TEST(SchedulerSharing, AFollowerThatNobodyListensToEndsWhileItWaits) {
  Followed both(std::chrono::milliseconds(0));
  both.follower->leave_after(0);
  std::size_t steps = 0;
  both.bench.runner_.before_step = [&](std::span<const StepItem>) -> Status {
    EXPECT_EQ(both.bench.scheduler_.load().queued, ++steps == 1 ? 1u : 0u);
    return {};
  };
  both.bench.run();
  expect_answer(*both.first, both.prompt, 4);
}

TEST(SchedulerSharing, WhoHasJustHeardIsNotToldThatItWaits) {
  Followed both(std::chrono::hours(1));
  both.bench.runner_.before_step = [&](std::span<const StepItem>) -> Status {
    if (both.first->last_progress().done < 2900) {
      EXPECT_EQ(both.follower->last_progress().total, 0u);
    }
    return {};
  };
  both.bench.run();
  expect_answer(*both.first, both.prompt, 4);
}

TEST(SchedulerSharing, PromptsThatDivergeInsideAPageShareUpToThere) {
  Bench bench;
  Tokens shared = random_tokens(2900, 1);
  std::vector<Tokens> prompts;
  std::vector<std::shared_ptr<Collector>> sinks;
  for (Token i = 0; i < 5; ++i) {
    prompts.push_back(shared + Tokens{i} + random_tokens(99, 2));
    sinks.push_back(bench.submit(request_for(prompts.back())));
  }
  bench.run();
  for (std::size_t i = 0; i < sinks.size(); ++i) {
    expect_answer(*sinks[i], prompts[i], 4);
  }
  EXPECT_EQ(bench.runner_.computed_tokens, 3000u + 4 * 100 + 5 * 3);
}

std::vector<std::shared_ptr<Collector>> submit_group(
    Bench& bench, GenerationRequest request, int count
) {
  request.share_group = std::make_shared<const ShareGroup>();
  std::vector<std::shared_ptr<Collector>> sinks;
  for (int i = 0; i < count; ++i) {
    sinks.push_back(bench.submit(request));
  }
  return sinks;
}

TEST(SchedulerSharing, OneOfAGroupReadsForAllThoughNothingIsCached) {
  // Also where the answers end with the step that has read the prompt.
  for (std::size_t count : {1, 4}) {
    Bench bench;
    Tokens prompt = random_tokens(700, 1);
    auto sinks = submit_group(bench, uncached(prompt, count), 20);
    bench.run();
    for (const auto& sink : sinks) {
      expect_answer(*sink, prompt, count);
    }
    EXPECT_EQ(bench.runner_.computed_tokens, 700 + 19 + 20 * (count - 1));
    ASSERT_TRUE(bench.wait_idle());
    EXPECT_EQ(bench.cache_.stats().blocks, 0u);
    EXPECT_EQ(bench.runner_.pool().live_pages(), 0u);
  }
}

TEST(SchedulerSharing, AGroupSharesItsPrefillThoughOnlyOneHasAPlace) {
  SchedulerOptions options;
  options.decode_concurrency = 1;
  for (std::size_t count : {1, 4}) {
    Bench bench(options);
    Tokens prompt = random_tokens(700, 1);
    auto sinks = submit_group(bench, uncached(prompt, count), 4);
    bench.run();
    for (const auto& sink : sinks) {
      expect_answer(*sink, prompt, count);
    }
    EXPECT_EQ(bench.runner_.computed_tokens, 700 + 3 + 4 * (count - 1));
    ASSERT_TRUE(bench.wait_idle());
    EXPECT_EQ(bench.runner_.pool().live_pages(), 0u);
  }
}

TEST(SchedulerSharing, AGroupSharesShortPromptsToo) {
  Bench bench;
  auto sinks = submit_group(bench, uncached({1, 2, 3, 4, 5}, 2), 3);
  bench.run();
  for (const auto& sink : sinks) {
    expect_answer(*sink, {1, 2, 3, 4, 5}, 2);
  }
  EXPECT_EQ(bench.runner_.computed_tokens, 5u + 2 + 3);
}

TEST(SchedulerSharing, AGroupSharesWhatIsTooShortForTheCache) {
  Bench bench;
  Tokens prompt = random_tokens(31, 1);
  auto group = std::make_shared<const ShareGroup>();
  std::vector<std::shared_ptr<Collector>> sinks{
      bench.submit(request_for(prompt, 1))};
  bench.run();
  expect_answer(*sinks[0], prompt, 1);
  ASSERT_TRUE(bench.wait_idle());
  bench.runner_.computed_tokens = 0;
  Gate gate;
  bench.scheduler_.post([&](Runner&) { gate.hold(); });
  for (int i = 0; i < 3; ++i) {
    GenerationRequest request = request_for(prompt, 2);
    request.share_group = group;
    sinks.push_back(bench.submit(std::move(request)));
  }
  gate.release();
  for (std::size_t i = 1; i < sinks.size(); ++i) {
    expect_answer(*sinks[i], prompt, 2);
  }
  EXPECT_EQ(bench.runner_.computed_tokens, 31u + 2 + 3);
}

TEST(SchedulerSharing, WithoutTheCacheRequestsShareNothing) {
  Bench bench;
  Tokens prompt = random_tokens(700, 1);
  std::vector<std::shared_ptr<Collector>> sinks;
  for (int i = 0; i < 2; ++i) {
    sinks.push_back(bench.submit(uncached(prompt)));
    GenerationRequest other = uncached(prompt);
    other.share_group = std::make_shared<const ShareGroup>();
    sinks.push_back(bench.submit(std::move(other)));
  }
  // This one reads the cache, but nobody puts anything there.
  GenerationRequest reads = uncached(prompt);
  reads.cache_read = true;
  sinks.push_back(bench.submit(std::move(reads)));
  bench.run();
  for (const auto& sink : sinks) {
    expect_answer(*sink, prompt, 4);
    EXPECT_EQ(sink->finished()->timings.cache_n, 0u);
  }
  EXPECT_EQ(bench.runner_.computed_tokens, 5u * (700 + 3));
}

TEST(SchedulerSharing, NamespacesShareNothing) {
  Bench bench;
  Tokens prompt = random_tokens(700, 1);
  std::vector<std::shared_ptr<Collector>> sinks;
  for (const char* name : {"", "a", "b", "a"}) {
    GenerationRequest request = request_for(prompt);
    request.cache_namespace = name;
    sinks.push_back(bench.submit(std::move(request)));
  }
  bench.run();
  for (const auto& sink : sinks) {
    expect_answer(*sink, prompt, 4);
  }
  EXPECT_EQ(bench.runner_.computed_tokens, 3u * 700 + 1 + 4 * 3);
}

TEST(SchedulerSharing, ShortPromptsDoNotWaitForEachOther) {
  Bench bench;
  Tokens prompt = random_tokens(20, 1);
  std::size_t most_at_once = 0;
  bench.runner_.before_step = [&](std::span<const StepItem> items) -> Status {
    most_at_once = std::max(most_at_once, items.size());
    return {};
  };
  // Each in a group of its own, as the server's requests are.
  std::vector<std::shared_ptr<Collector>> sinks;
  for (int i = 0; i < 2; ++i) {
    GenerationRequest request = request_for(prompt);
    request.share_group = std::make_shared<const ShareGroup>();
    sinks.push_back(bench.submit(std::move(request)));
  }
  bench.run();
  expect_answer(*sinks[0], prompt, 4);
  expect_answer(*sinks[1], prompt, 4);
  EXPECT_EQ(most_at_once, 2u);
  EXPECT_EQ(bench.runner_.computed_tokens, 2u * (20 + 3));
}

TEST(SchedulerSharing, OneThatAnswersLendsWhatItHasNotSealed) {
  Bench bench;
  Tokens prompt = random_tokens(700, 1);
  Gate gate;
  bench.runner_.before_step = [&](std::span<const StepItem> items) -> Status {
    if (items[0].kv->length() == 703) {
      gate.hold();
    }
    return {};
  };
  bench.run();
  auto first = bench.submit(request_for(prompt, 30));
  gate.wait();
  // Tails are sealed at the end: the cache has 512 tokens by now.
  Tokens longer = prompt + FakeRunner::answer(prompt, 3) + Tokens{5, 6};
  auto same = bench.submit(request_for(prompt, 30));
  auto further = bench.submit(request_for(longer, 30));
  gate.release();
  expect_answer(*first, prompt, 30);
  expect_answer(*same, prompt, 30);
  expect_answer(*further, longer, 30);
  EXPECT_EQ(same->finished()->timings.cache_n, 699u);
  // Answers are shared by way of the cache only.
  EXPECT_EQ(further->finished()->timings.cache_n, 700u);
  EXPECT_EQ(bench.runner_.computed_tokens, 700u + 1 + 5 + 3 * 29);
}

TEST(SchedulerSharing, AfterACancelledLeaderTheNextGoesOnFromItsEnd) {
  Bench bench;
  Tokens prompt = random_tokens(3000, 1);
  Gate gate;
  int steps = 0;
  bench.runner_.before_step = [&](auto) -> Status {
    if (++steps == 10) {
      gate.hold();
    }
    return {};
  };
  auto leader = std::make_shared<Collector>();
  Result<RequestId> id = bench.submit(prompt, 4, leader);
  ASSERT_TRUE(id.ok());
  std::vector<std::shared_ptr<Collector>> sinks;
  for (int i = 0; i < 3; ++i) {
    sinks.push_back(bench.submit(request_for(prompt)));
  }
  bench.run();
  gate.wait();
  bench.scheduler_.cancel(*id);
  gate.release();
  ASSERT_TRUE(leader->wait());
  EXPECT_EQ(leader->finished()->reason, FinishReason::kCancelled);
  for (const auto& sink : sinks) {
    expect_answer(*sink, prompt, 4);
  }
  // What the leader had read was sealed; nothing is computed twice.
  EXPECT_EQ(bench.runner_.computed_tokens, 3000u + 2 + 3 * 3);
}

TEST(SchedulerSharing, WhenALeaderFailsTheNextOneReads) {
  for (bool cached : {true, false}) {
    Bench bench;
    Tokens prompt = random_tokens(1000, 1);
    auto group = std::make_shared<const ShareGroup>();
    const KvState* leader = nullptr;
    bool failed = false;
    bench.runner_.before_step = [&](std::span<const StepItem> items) -> Status {
      if (leader == nullptr) {
        leader = items[0].kv;
      }
      for (const StepItem& item : items) {
        if (!failed && item.kv == leader && item.kv->length() > 300) {
          failed = true;
          return Error{Code::kInternal, "as the test wants"};
        }
      }
      return {};
    };
    std::vector<std::shared_ptr<Collector>> sinks;
    for (int i = 0; i < 4; ++i) {
      GenerationRequest request =
          cached ? request_for(prompt) : uncached(prompt);
      request.share_group = group;
      sinks.push_back(bench.submit(std::move(request)));
    }
    bench.run();
    ASSERT_TRUE(sinks[0]->wait());
    ASSERT_TRUE(sinks[0]->failed());
    for (int i = 1; i < 4; ++i) {
      expect_answer(*sinks[i], prompt, 4);
    }
    std::size_t again = cached ? 0 : sinks[0]->last_progress().done;
    EXPECT_EQ(bench.runner_.computed_tokens, 1000 + again + 2 + 3 * 3);
  }
}

TEST(SchedulerSharing, LeadersMayLeaveOneAfterTheOther) {
  Bench bench;
  Tokens prompt = random_tokens(4000, 1);
  std::vector<std::shared_ptr<Collector>> sinks;
  std::vector<RequestId> ids;
  for (int i = 0; i < 10; ++i) {
    sinks.push_back(std::make_shared<Collector>());
    Result<RequestId> id = bench.submit(prompt, 4, sinks.back());
    ASSERT_TRUE(id.ok());
    ids.push_back(*id);
  }
  std::size_t steps = 0;
  bench.runner_.before_step = [&](auto) -> Status {
    if (++steps % 3 == 0 && steps / 3 <= 9) {
      bench.scheduler_.cancel(ids[steps / 3 - 1]);
    }
    return {};
  };
  bench.run();
  expect_answer(*sinks.back(), prompt, 4);
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE(sinks[i]->wait());
    EXPECT_EQ(sinks[i]->finished()->reason, FinishReason::kCancelled);
  }
  // Pieces that a cancelled step had not finished are computed by the next.
  EXPECT_EQ(bench.runner_.computed_tokens, 4000u + 3);
}

}  // namespace
}  // namespace afterglow
