#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "kv/cache_fixture.h"

// What becomes of blocks whose files others removed while their pages are in
// RAM.

namespace afterglow {
namespace {

using F = CacheFixture;
using std::chrono::milliseconds;

constexpr std::int64_t kMinute = 60'000'000'000;

/// Blocks of a sequence below the fixture's root.
std::vector<BlockId> path_of(const TokenList& all) {
  std::vector<BlockId> ids;
  BlockId parent = F::root();
  for (std::size_t start = 0; start < all.size(); start += kPageTokens) {
    std::size_t n = std::min(kPageTokens, all.size() - start);
    parent = block_id(parent, start, std::span(all).subspan(start, n));
    ids.push_back(parent);
  }
  return ids;
}

std::vector<BlockId> sorted(std::vector<BlockId> ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

struct Renewal : CacheFixture, testing::Test {
  Renewal() : CacheFixture({}, true) {}

  /// Others remove everything, and it is noticed.
  void lose_all() {
    for (const BlockId& id : cache.durable_blocks()) {
      cache.forget_disk(id);
    }
    ASSERT_EQ(stats().disk_blocks, 0u);
  }
  std::vector<BlockId> taken() {
    std::vector<BlockId> ids;
    for (auto& dirty : cache.take_dirty(kNow, milliseconds(0))) {
      ids.push_back(dirty.block->id);
    }
    return ids;
  }
};

TEST_F(Renewal, WhatWasLostIsWrittenAgainWhenASequenceRunsThroughIt) {
  TokenList all = F::tokens(600, 1);
  insert(all);
  write_all();
  lose_all();
  EXPECT_TRUE(taken().empty()) << "nobody used it since";
  insert(all);
  std::uint64_t ticket = cache.dirty_ticket();
  auto now = std::chrono::steady_clock::now();
  EXPECT_FALSE(cache.wait_clean(ticket, now));
  auto again = taken();
  EXPECT_EQ(again, path_of(all));
  for (const BlockId& id : again) {
    cache.set_durable(id, kPageBytes);
  }
  EXPECT_TRUE(cache.wait_clean(ticket, now));
  EXPECT_EQ(stats().disk_blocks, 3u);
  EXPECT_EQ(stats().disk_bytes, 3 * kPageBytes);
  cache.verify();
}

TEST_F(Renewal, WhatTheSequenceDoesNotRunThroughIsNot) {
  TokenList shared = F::tokens(512, 1);
  TokenList a = F::tokens(800, 2, shared);
  TokenList b = F::tokens(800, 3, shared);
  TokenList apart = F::tokens(300, 4);
  insert(a);
  insert(b);
  insert(apart);
  write_all();
  lose_all();
  insert(a);
  EXPECT_EQ(taken(), path_of(a));
  // One that parts inside a block shares its tokens, but not the block.
  lose_all();
  insert(F::tokens(300, 5, {apart.begin(), apart.begin() + 100}));
  auto written = taken();
  EXPECT_EQ(std::count(written.begin(), written.end(), path_of(apart)[0]), 0);
  // Nor does a lookup write anything.
  EXPECT_EQ(found(b), 800u);
  EXPECT_TRUE(taken().empty());
}

TEST_F(Renewal, AShorterTailRenewsTheLongerItIsPartOf) {
  TokenList all = F::tokens(400, 1);
  insert(all);
  write_all();
  lose_all();
  insert({all.begin(), all.begin() + 300});
  EXPECT_EQ(taken(), path_of(all));
}

TEST_F(Renewal, WhatIsUsedIsNamedToBeLookedFor) {
  TokenList all = F::tokens(600, 1);
  insert(all);
  write_all();
  EXPECT_TRUE(cache.take_used().empty()) << "what was just written";
  insert(all);
  EXPECT_EQ(sorted(cache.take_used()), sorted(path_of(all)));
  EXPECT_TRUE(cache.take_used().empty());
  EXPECT_TRUE(taken().empty()) << "believed durable";
  // The last two were not there.
  for (std::size_t i : {2, 1}) {
    cache.renew(path_of(all)[i]);
  }
  EXPECT_EQ(stats().disk_blocks, 1u);
  EXPECT_EQ(stats().dirty_blocks, 2u);
  auto expected = path_of(all);
  expected.erase(expected.begin());
  EXPECT_EQ(taken(), expected);
  cache.verify();
}

TEST_F(Renewal, WhatIsFoundGoneBeforeItIsLookedForIsWrittenAgain) {
  TokenList all = F::tokens(600, 1);
  insert(all);
  write_all();
  insert(all);
  auto used = cache.take_used();
  lose_all();
  EXPECT_TRUE(taken().empty());
  for (const BlockId& id : used) {
    cache.renew(id);
  }
  EXPECT_EQ(taken(), path_of(all));
}

TEST_F(Renewal, WithoutAPageThereIsNothingToRenew) {
  TokenList all = F::tokens(600, 1);
  insert(all);
  write_all();
  cache.shrink_ram(~std::uint64_t{0});
  cache.renew(path_of(all)[1]);
  EXPECT_EQ(found(all), 256u);
  EXPECT_EQ(stats().dirty_blocks, 0u);
  cache.renew(F::root(9));
  cache.verify();
}

TEST_F(Renewal, AnOrphanThatComesToUseIsLookedFor) {
  TokenList all = F::tokens(512, 1);
  cache.add_disk_block(
      make_block(path_of(all)[0], 256, std::span(all).subspan(256)), 100, 5
  );
  insert(all);
  EXPECT_EQ(cache.take_used(), std::vector{path_of(all)[1]});
  cache.renew(path_of(all)[1]);
  EXPECT_EQ(taken(), path_of(all));
}

TEST_F(Renewal, APinWritesAgainAndAnUnpinDoesNot) {
  TokenList all = F::tokens(600, 1);
  insert(all);
  write_all();
  lose_all();
  ASSERT_TRUE(cache.set_pinned(path_of(all).back(), 600, false));
  EXPECT_TRUE(taken().empty());
  ASSERT_TRUE(cache.set_pinned(path_of(all).back(), 600, true));
  EXPECT_EQ(taken(), path_of(all));
  for (const BlockId& id : path_of(all)) {
    cache.set_durable(id, kPageBytes);
  }
  cache.take_used();
  ASSERT_TRUE(cache.set_pinned(path_of(all).back(), 600, true));
  EXPECT_EQ(sorted(cache.take_used()), sorted(path_of(all)));
  // Being pinned alone brings nothing back that was cleared.
  lose_all();
  EXPECT_TRUE(taken().empty());
  cache.verify();
}

TEST_F(Renewal, WhatIsLostWhileItIsUsedIsWrittenAgain) {
  TokenList all = F::tokens(512, 1);
  insert(all);
  write_all();
  {
    Trail trail = run(all);
    lose_all();
  }
  EXPECT_EQ(taken(), path_of(all));
}

TEST_F(Renewal, ARemovalIsNotUndone) {
  TokenList all = F::tokens(600, 1);
  insert(all);
  write_all();
  lose_all();
  insert(all);
  ASSERT_TRUE(cache.remove(path_of(all).back(), 600));
  EXPECT_TRUE(taken().empty()) << "queued";
  EXPECT_EQ(stats().blocks, 0u);

  insert(all);
  write_all();
  lose_all();
  insert(all);
  ASSERT_EQ(taken(), path_of(all));
  ASSERT_TRUE(cache.remove(path_of(all).back(), 600));
  for (const BlockId& id : path_of(all)) {
    cache.set_durable(id, kPageBytes);  // it was being written
  }
  auto gone = cache.take_superseded();
  EXPECT_EQ(sorted(gone), sorted(path_of(all)));
  EXPECT_EQ(stats().blocks, 0u);

  insert(all);
  write_all();
  insert(all);  // to be looked for
  cache.clear();
  for (const BlockId& id : cache.take_used()) {
    cache.renew(id);
  }
  EXPECT_TRUE(taken().empty());
  EXPECT_EQ(stats().blocks, 0u);
  cache.verify();
}

TEST_F(Renewal, AUseTriesAFailedWriteAgainAfterAMinuteAndAPinAtOnce) {
  TokenList all = F::tokens(256, 1);
  auto fail = [&] {
    auto ids = taken();
    for (const BlockId& id : ids) {
      cache.set_write_failed(id);
    }
    return ids.size();
  };
  insert(all);
  EXPECT_EQ(fail(), 1u);
  insert(all);
  EXPECT_EQ(fail(), 0u);
  *time += kMinute;
  insert(all);
  EXPECT_EQ(fail(), 1u);
  insert(all);
  EXPECT_EQ(fail(), 0u);
  ASSERT_TRUE(cache.set_pinned(path_of(all)[0], 256, true));
  EXPECT_EQ(fail(), 1u);
}

TEST(RenewalAlone, AUseWakesTheStore) {
  PromptCache cache(F::kPageBytes, {}, true);
  TokenList all = F::tokens(256, 1);
  auto use = [&] {
    Trail trail = cache.start(F::root(), {}, {});
    F::extend(trail, all, all.size());
  };
  use();
  for (auto& dirty : cache.take_dirty(F::kNow, milliseconds(0))) {
    cache.set_durable(dirty.block->id, 1);
  }
  auto far = std::chrono::steady_clock::now() + std::chrono::hours(1);
  std::thread store([&] {
    while (cache.take_used().empty()) {
      EXPECT_TRUE(cache.take_dirty(far, milliseconds(0)).empty());
    }
  });
  use();
  store.join();
}

TEST(RenewalAlone, WithoutADiskNothingIsLookedForOrQueued) {
  F f;
  TokenList all = F::tokens(256, 1);
  f.insert(all);
  f.insert(all);
  f.cache.set_pinned(path_of(all)[0], 256, true);
  EXPECT_TRUE(f.cache.take_used().empty());
  EXPECT_EQ(f.stats().dirty_blocks, 0u);
}

}  // namespace
}  // namespace afterglow
