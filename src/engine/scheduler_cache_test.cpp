#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/memory_file_system.h"
#include "engine/collector.h"
#include "engine/fake_runner.h"
#include "engine/scheduler.h"

// What a scheduler asks of the cache and the store below it, and what it
// tells of that.

namespace afterglow {
namespace {

/// A store that answers restores as the test says.
class ScriptedStore : public Store {
 public:
  std::function<void(RestoreRequest)> on_restore;

  void restore(RestoreRequest request) override {
    on_restore(std::move(request));
  }
  FlushReport
  flush(std::chrono::steady_clock::time_point, const std::optional<BlockId>&)
      override {
    return {.complete = true};
  }
  Result<std::uint64_t> clear(const std::optional<BlockId>&) override {
    return std::uint64_t{0};
  }
  Status forget(const EntryRecord&) override { return {}; }
  Result<std::string> namespace_secret() override {
    return std::string(32, 's');
  }
  StoreStats stats() const override { return {}; }
};

/// What a store answers when the match has all its pages.
Restored in_ram(const Match& match) {
  return {match.path(), match.tokens(), 0, 0};
}

class CacheBench {
 public:
  explicit CacheBench(Store* store = nullptr, bool with_disk = false)
      : cache_(runner_.layout().page_bytes(), {}, with_disk) {
    if (store != nullptr) {
      start(store);
    }
  }
  ~CacheBench() {
    if (scheduler_) {
      scheduler_->stop();
    }
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  void start(Store* store) {
    make(store);
    run();
  }
  // Apart, so that a test can queue requests before any is looked at.
  void make(Store* store) {
    scheduler_.emplace(runner_, cache_, store, SchedulerOptions{});
  }
  void run() {
    thread_ = std::thread([this] { scheduler_->run(); });
  }

  std::shared_ptr<Collector> submit(GenerationRequest request) {
    auto sink = std::make_shared<Collector>();
    request.sink = sink;
    EXPECT_TRUE(scheduler_->submit(std::move(request)).ok());
    return sink;
  }
  Finished ask(GenerationRequest request) {
    Tokens prompt = request.prompt;
    std::size_t count = request.max_tokens;
    auto sink = submit(std::move(request));
    EXPECT_TRUE(sink->wait());
    EXPECT_EQ(sink->tokens(), FakeRunner::answer(prompt, count));
    // The last event is sent before the request counts as ended.
    EXPECT_TRUE(scheduler_->wait_idle(
        std::chrono::steady_clock::now() + std::chrono::minutes(1)
    ));
    return sink->finished().value_or(Finished{});
  }

  FakeRunner runner_;
  PromptCache cache_;
  std::optional<Scheduler> scheduler_;
  std::thread thread_;
};

GenerationRequest request_for(Tokens prompt, std::size_t max_tokens = 4) {
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  return request;
}

TEST(SchedulerCache, AHitInMemoryWaitsForNoStep) {
  MemoryDisk disk;
  CacheBench bench(nullptr, true);
  StoreOptions options;
  options.layout = bench.runner_.layout();
  auto store = Store::open(
      disk.file_system(), options, bench.cache_, bench.runner_.pool()
  );
  ASSERT_TRUE(store.ok()) << store.error().message;
  // The step after which the second request comes, and the next one's size.
  std::promise<void> reached;
  std::promise<void> go_on;
  std::shared_future<void> may_go(go_on.get_future());
  bool holding = false;
  std::optional<std::size_t> next_step;
  bench.runner_.before_step = [&](std::span<const StepItem> items) -> Status {
    if (holding && !next_step) {
      next_step = items.size();
    }
    if (items.size() == 1 && items[0].kv->length() == 60 && !holding) {
      holding = true;
      reached.set_value();
      may_go.wait();
    }
    return {};
  };
  bench.start(store->get());
  Tokens known = random_tokens(400, 1);
  bench.ask(request_for(known));
  auto running = bench.submit(request_for(random_tokens(40, 2), 100));
  reached.get_future().wait();
  auto hit = bench.submit(request_for(known));
  go_on.set_value();
  ASSERT_TRUE(hit->wait());
  ASSERT_TRUE(running->wait());
  EXPECT_EQ(hit->finished()->timings.cache_ram_n, 399u);
  EXPECT_EQ(next_step, 2u);
  bench.scheduler_->stop();
  bench.thread_.join();
}

TEST(SchedulerCache, EveryLookupIsPutToTheStore) {
  ScriptedStore store;
  std::vector<double> prices;
  std::vector<std::size_t> matches;
  store.on_restore = [&](RestoreRequest request) {
    prices.push_back(request.seconds_per_token);
    matches.push_back(request.match.tokens());
    request.done(in_ram(request.match));
  };
  CacheBench bench(&store);
  bench.ask(request_for(random_tokens(300, 1)));
  bench.ask(request_for(random_tokens(300, 1)));
  bench.ask(request_for(random_tokens(20, 1)));  // too short to be a match
  EXPECT_EQ(matches, (std::vector<std::size_t>{0, 300, 0}));
  EXPECT_EQ(prices[0], 0);  // nothing measured yet
  EXPECT_GT(prices[1], 0);
  EXPECT_EQ(prices[1], prices[2]);  // the hit read no prompt to speak of
  EngineCounters counters = bench.scheduler_->counters();
  EXPECT_EQ(counters.prefill_seconds_per_token, prices[1]);
  EXPECT_DOUBLE_EQ(counters.prefill_seconds_saved, 299 * prices[1]);
}

TEST(SchedulerCache, SavedTokensArePricedOnceAPriceIsKnown) {
  ScriptedStore store;
  CacheBench warm;
  warm.start(nullptr);
  Tokens known = random_tokens(300, 1);
  warm.ask(request_for(known));
  Match match = warm.cache_.lookup(root_id({}, {}, ""), known);
  store.on_restore = [&](RestoreRequest request) {
    // As after a restart: the disk has what this process never computed.
    bool is_known = request.prompt == known;
    request.done(
        is_known ? Restored{match.path(), match.tokens(), match.tokens(), 0.25}
                 : Restored{}
    );
  };
  CacheBench bench(&store);
  Timings timings = bench.ask(request_for(known)).timings;
  EXPECT_EQ(timings.cache_disk_n, 299u);
  EXPECT_EQ(timings.prompt_n, 1u);
  EXPECT_EQ(bench.scheduler_->counters().prefill_seconds_saved, 0);
  bench.ask(request_for(random_tokens(100, 2)));
  EngineCounters counters = bench.scheduler_->counters();
  EXPECT_GT(counters.prefill_seconds_saved, 0);
  EXPECT_EQ(counters.disk_prompt_tokens, 299u);
  EXPECT_EQ(counters.disk_hits, 1u);
  EXPECT_EQ(counters.ram_hits, 0u);
  EXPECT_EQ(counters.computed_prompt_tokens, 101u);
  EXPECT_EQ(counters.recomputed_requests, 0u);
  bench.ask(request_for(random_tokens(100, 3)));  // saves nothing
  EXPECT_EQ(
      bench.scheduler_->counters().prefill_seconds_saved,
      counters.prefill_seconds_saved
  );
}

TEST(SchedulerCache, WhatWasRestoredAndYetComputedIsCounted) {
  ScriptedStore store;
  store.on_restore = [&](RestoreRequest request) {
    // Read from disk, and too short to be used.
    request.done({{}, 20, 20, 0.5});
  };
  CacheBench bench(&store);
  Timings timings = bench.ask(request_for(random_tokens(100, 1))).timings;
  EXPECT_EQ(timings.cache_n, 0u);
  EXPECT_EQ(timings.prompt_n, 100u);
  EngineCounters counters = bench.scheduler_->counters();
  EXPECT_EQ(counters.recomputed_requests, 1u);
  EXPECT_EQ(counters.recomputed_tokens, 20u);
  EXPECT_EQ(counters.computed_prompt_tokens, 100u);
}

TEST(SchedulerCache, AShortMatchInMemoryIsNoRestore) {
  CacheBench bench;
  bench.start(nullptr);
  Tokens prompt = random_tokens(60, 1);
  bench.ask(request_for(prompt));
  prompt.resize(25);
  EXPECT_EQ(bench.ask(request_for(prompt)).timings.prompt_n, 25u);
  EXPECT_EQ(bench.scheduler_->counters().recomputed_requests, 0u);
}

TEST(SchedulerCache, AStepThatFailsIsNotCountedAsComputed) {
  CacheBench bench;
  bool failed = false;
  bench.runner_.before_step = [&](std::span<const StepItem> items) -> Status {
    if (!failed && items.size() == 2) {
      failed = true;
      return Error{Code::kInternal, "once"};
    }
    return {};
  };
  bench.make(nullptr);
  auto first = bench.submit(request_for(random_tokens(600, 1)));
  auto second = bench.submit(request_for(random_tokens(500, 2)));
  bench.run();
  ASSERT_TRUE(first->wait());
  ASSERT_TRUE(second->wait());
  EXPECT_TRUE(failed);
  EXPECT_EQ(first->finished()->timings.prompt_n, 600u);
  EXPECT_EQ(second->finished()->timings.prompt_n, 500u);
}

TEST(SchedulerCache, RequestsAreCountedByTheirEnd) {
  CacheBench bench;
  std::mutex gate;  // held: no long answer gets further
  bench.runner_.before_step = [&](std::span<const StepItem> items) -> Status {
    if (items[0].kv->length() > 60) {
      std::lock_guard pass(gate);
    }
    return items[0].tokens[0] == 96 && items[0].kv->length() == 0
               ? Status(Error{Code::kInternal, "bad"})
               : Status();
  };
  bench.start(nullptr);
  Tokens prompt = Tokens(40, 1);
  bench.ask(request_for(prompt, 3));
  GenerationRequest stops = request_for(prompt, 3);
  stops.stop_tokens = {FakeRunner::answer(prompt, 1)[0]};
  ASSERT_TRUE(bench.submit(stops)->wait());
  ASSERT_TRUE(bench.submit(request_for({96, 1}))->wait());
  for (FinishReason reason : {FinishReason::kCancelled, FinishReason::kStop}) {
    auto sink = std::make_shared<Collector>();
    GenerationRequest endless = request_for(prompt, 8000);
    endless.sink = sink;
    std::unique_lock hold(gate);
    auto id = bench.scheduler_->submit(endless);
    ASSERT_TRUE(id.ok());
    ASSERT_TRUE(sink->wait_for_tokens(1));
    bench.scheduler_->cancel(*id, reason);
    hold.unlock();
    ASSERT_TRUE(sink->wait());
    ASSERT_TRUE(sink->finished().has_value());
    EXPECT_EQ(sink->finished()->reason, reason);
  }
  ASSERT_TRUE(bench.scheduler_->wait_idle(
      std::chrono::steady_clock::now() + std::chrono::minutes(1)
  ));
  EngineCounters counters = bench.scheduler_->counters();
  EXPECT_EQ(counters.finished[std::size_t(FinishReason::kLength)], 1u);
  EXPECT_EQ(counters.finished[std::size_t(FinishReason::kStop)], 2u);
  EXPECT_EQ(counters.finished[std::size_t(FinishReason::kCancelled)], 1u);
  EXPECT_EQ(counters.failed, 1u);
  EXPECT_GE(counters.generated_tokens, 3u + 2u);
}

TEST(SchedulerCache, ARequestMayReadAndKeepNothing) {
  CacheBench bench;
  bench.start(nullptr);
  Tokens known = random_tokens(600, 1);
  EXPECT_TRUE(bench.ask(request_for(known)).timings.cache_store);
  CacheStats before = bench.cache_.stats();
  Tokens more = known;
  Tokens rest = random_tokens(600, 2);
  more.insert(more.end(), rest.begin(), rest.end());
  GenerationRequest request = request_for(more);
  request.cache_store = false;
  Timings timings = bench.ask(request).timings;
  EXPECT_EQ(timings.cache_n, 600u);
  EXPECT_FALSE(timings.cache_store);
  EXPECT_EQ(bench.cache_.stats().blocks, before.blocks);
  EXPECT_EQ(bench.cache_.stats().entries, before.entries);
  EXPECT_EQ(bench.cache_.stats().ram_bytes, before.ram_bytes);
  EXPECT_EQ(bench.ask(request_for(more)).timings.cache_n, 600u);
}

TEST(SchedulerCache, ARequestMayKeepAndReadNothing) {
  CacheBench bench;
  bench.start(nullptr);
  Tokens prompt = random_tokens(600, 1);
  bench.ask(request_for(prompt));
  GenerationRequest request = request_for(prompt);
  request.cache_read = false;
  EXPECT_EQ(bench.ask(request).timings.prompt_n, 600u);
  EXPECT_EQ(bench.cache_.stats().lookups, 1u);
  request.prompt = random_tokens(500, 2);
  bench.ask(request);
  EXPECT_EQ(bench.ask(request_for(request.prompt)).timings.cache_n, 499u);
}

TEST(SchedulerCache, NamespacesNeverShare) {
  CacheBench bench;
  bench.start(nullptr);
  Tokens prompt = random_tokens(700, 1);
  auto cached = [&](const std::string& name) {
    GenerationRequest request = request_for(prompt);
    request.cache_namespace = name;
    return bench.ask(request).timings.cache_n;
  };
  for (const char* name : {"", "a", "b"}) {
    EXPECT_EQ(cached(name), 0u) << name;
    EXPECT_EQ(cached(name), 699u) << name;
    BlockId root = bench.scheduler_->root_of(name);
    EXPECT_FALSE(bench.cache_.entries(root).empty());
  }
}

// The others wait for the first one's pages, though it waits for the disk.
TEST(SchedulerCache, EqualPromptsAtOnceCostOnePrefillWithAStoreToo) {
  CacheBench bench;
  ScriptedStore store;
  std::mutex mutex;
  std::vector<RestoreRequest> waiting;
  std::promise<void> asked;
  store.on_restore = [&](RestoreRequest request) {
    std::lock_guard lock(mutex);
    if (!waiting.empty() || request.match.tokens() > 0) {
      request.done(in_ram(request.match));
      return;
    }
    waiting.push_back(std::move(request));
    asked.set_value();
  };
  bench.start(&store);
  Tokens prompt = random_tokens(2000, 1);
  std::vector<std::shared_ptr<Collector>> sinks;
  for (int i = 0; i < 4; ++i) {
    sinks.push_back(bench.submit(request_for(prompt)));
  }
  asked.get_future().wait();
  // One that shares nothing passes them meanwhile.
  GenerationRequest other = request_for(random_tokens(300, 2));
  other.cache_read = false;
  auto passing = bench.submit(other);
  ASSERT_TRUE(passing->wait());
  {
    std::lock_guard lock(mutex);
    ASSERT_EQ(waiting.size(), 1u);
    waiting[0].done({});
  }
  for (const auto& sink : sinks) {
    ASSERT_TRUE(sink->wait());
    EXPECT_EQ(sink->tokens(), FakeRunner::answer(prompt, 4));
  }
  std::size_t tail = 2000 - 7 * kPageTokens;
  EXPECT_LE(bench.runner_.computed_tokens, 303 + 2000 + 3 * tail + 4 * 3);
}

// One who shares with a leader that waits for the disk only what memory has
// anyway goes on at once; who shares more waits with it.
TEST(SchedulerCache, NobodyWaitsForADiskForWhatLiesInMemory) {
  CacheBench bench;
  ScriptedStore store;
  const Tokens known = random_tokens(600, 1);
  const Tokens prompt = known + random_tokens(900, 2);
  std::mutex mutex;
  std::vector<RestoreRequest> held;
  std::vector<Tokens> asked;
  std::promise<void> reached;
  store.on_restore = [&](RestoreRequest request) {
    std::lock_guard lock(mutex);
    asked.push_back(request.prompt);
    if (request.prompt == prompt) {
      held.push_back(std::move(request));
      reached.set_value();
    } else {
      request.done(in_ram(request.match));
    }
  };
  bench.start(&store);
  bench.ask(request_for(known));
  auto leader = bench.submit(request_for(prompt));
  reached.get_future().wait();
  Tokens longer = prompt + Tokens{1, 2, 3};
  auto follower = bench.submit(request_for(longer));
  Tokens other = known + random_tokens(300, 3);
  auto passing = bench.submit(request_for(other));
  ASSERT_TRUE(passing->wait());
  EXPECT_EQ(passing->tokens(), FakeRunner::answer(other, 4));
  EXPECT_EQ(passing->finished()->timings.cache_n, 600u);
  {
    std::lock_guard lock(mutex);
    EXPECT_EQ(asked, (std::vector<Tokens>{known, prompt, other}));
    ASSERT_EQ(held.size(), 1u);
    held[0].done(in_ram(held[0].match));
  }
  ASSERT_TRUE(leader->wait());
  EXPECT_EQ(leader->tokens(), FakeRunner::answer(prompt, 4));
  ASSERT_TRUE(follower->wait());
  EXPECT_EQ(follower->tokens(), FakeRunner::answer(longer, 4));
  EXPECT_EQ(follower->finished()->timings.cache_n, 1500u);
}

}  // namespace
}  // namespace afterglow
