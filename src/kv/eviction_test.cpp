#include <gtest/gtest.h>

#include "kv/cache_fixture.h"

namespace afterglow {
namespace {

using F = CacheFixture;

CacheLimits pages(std::size_t n) {
  CacheLimits limits;
  limits.ram_bytes = n * F::kPageBytes;
  return limits;
}

TEST(Eviction, TheOldestIsShortenedFromItsEndBlockByBlock) {
  F f(pages(6));
  TokenList a = F::tokens(4 * 256, 1);
  TokenList b = F::tokens(2 * 256, 2);
  f.insert(a);
  f.insert(b);
  EXPECT_EQ(f.found(a), 4 * 256u);
  // The lookup made a the newer one.
  f.insert(F::tokens(256, 3));
  EXPECT_EQ(f.found(b), 256u);
  EXPECT_EQ(f.found(a), 4 * 256u);
  EXPECT_EQ(f.stats().ram_bytes, 6 * F::kPageBytes);
  EXPECT_EQ(f.stats().evicted.ram_blocks, 1u);
  f.cache.verify();
}

TEST(Eviction, SharedPagesCountOnceAndStayForTheOther) {
  F f(pages(4));
  TokenList a = F::tokens(3 * 256, 1);
  TokenList b = F::tokens(3 * 256, 2, {a.begin(), a.begin() + 512});
  f.insert(a);
  f.insert(b);
  EXPECT_EQ(f.stats().ram_bytes, 4 * F::kPageBytes);
  EXPECT_EQ(f.found(a), 768u);
  EXPECT_EQ(f.found(b), 768u);
  // a is now the older and loses the page that only it holds.
  f.insert(F::tokens(256, 3));
  EXPECT_EQ(f.found(a), 512u);
  EXPECT_EQ(f.found(b), 768u);
  f.cache.verify();
}

TEST(Eviction, AnEntryOverBudgetCostsNobodyElseAnything) {
  for (bool with_disk : {false, true}) {
    F f(pages(10), with_disk);
    TokenList a = F::tokens(2 * 256, 1);
    TokenList b = F::tokens(3 * 256, 2);
    f.insert(a);
    f.insert(b);
    TokenList large = F::tokens(20 * 256, 3);
    f.insert(large, {{EntryType::kUser, 18 * 256}});
    f.write_all();
    EXPECT_EQ(f.found_in_ram(a), 2 * 256u);
    EXPECT_EQ(f.found_in_ram(b), 3 * 256u);
    EXPECT_EQ(f.found_in_ram(large), 5 * 256u);
    EXPECT_EQ(f.found(large), (with_disk ? 20 : 5) * 256u);
    EXPECT_EQ(f.stats().dropped_blocks, with_disk ? 0u : 10u);
    f.cache.verify();
  }
}

TEST(Eviction, LookupComesFirstAndProtectsWhatItFound) {
  F f(pages(3));
  TokenList a = F::tokens(3 * 256, 1);
  f.insert(a);
  Match match = f.cache.lookup(F::root(), a);
  TokenList b = F::tokens(3 * 256, 2);
  f.insert(b);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(match.path()[i].page);
  }
  EXPECT_EQ(f.found(a), 3 * 256u);
  EXPECT_EQ(f.found(b), 0u);
  EXPECT_EQ(f.stats().dropped_blocks, 3u);
  // Neither freed now nor given up for the time after the match.
  EXPECT_EQ(f.cache.shrink_ram(1 << 20), 0u);
  match = Match();
  EXPECT_EQ(f.cache.shrink_ram(1 << 20), 3 * F::kPageBytes);
  EXPECT_EQ(f.found(a), 0u);
  f.cache.verify();
}

TEST(Eviction, ARunningSequenceKeepsItsOwn) {
  F f(pages(2));
  TokenList a = F::tokens(2 * 256, 1);
  Trail trail = f.run(a);
  f.insert(F::tokens(2 * 256, 2));
  EXPECT_EQ(f.found(a), 2 * 256u);
  EXPECT_EQ(f.cache.shrink_ram(1 << 20), 0u);
  trail = Trail();
  EXPECT_EQ(f.stats().ram_bytes, 2 * F::kPageBytes);
}

TEST(Eviction, DirtyPagesCannotBeFreed) {
  F f(pages(2), true);
  TokenList a = F::tokens(6 * 256, 1);
  for (int i = 0; i < 6; ++i) {
    f.insert(F::tokens(256, 1 + i));
  }
  EXPECT_EQ(f.stats().ram_bytes, 6 * F::kPageBytes);
  EXPECT_EQ(f.cache.shrink_ram(1 << 20), 0u);
  auto taken = f.cache.take_dirty(F::kNow, std::chrono::milliseconds(0));
  ASSERT_EQ(taken.size(), 6u);
  EXPECT_EQ(f.cache.shrink_ram(1 << 20), 0u) << "being written";
  for (auto& dirty : taken) {
    EXPECT_TRUE(dirty.page);
    f.cache.set_durable(dirty.block->id, 100);
  }
  EXPECT_EQ(f.stats().ram_bytes, 2 * F::kPageBytes);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(f.found(F::tokens(256, 1 + i)), 256u) << "still on disk";
    EXPECT_EQ(f.found_in_ram(F::tokens(256, 1 + i)), i < 4 ? 0u : 256u);
  }
  EXPECT_EQ(f.stats().entries, 6u);
  f.cache.verify();
}

TEST(Eviction, WithoutRamBudgetAllGoesToDisk) {
  F f(pages(0), true);
  TokenList a = F::tokens(1000, 1);
  Trail trail = f.run(a);
  f.write_all();
  trail = Trail();
  EXPECT_EQ(f.stats().ram_pages, 0u);
  EXPECT_EQ(f.stats().dropped_blocks, 0u);
  EXPECT_EQ(f.found(a), 1000u);
  EXPECT_EQ(f.found_in_ram(a), 0u);
  f.cache.verify();
}

TEST(Eviction, WithoutRamOrDiskNothingStays) {
  F f(pages(0));
  f.insert(F::tokens(1000, 1), {{EntryType::kSystem, 10}});
  EXPECT_EQ(f.stats().dropped_blocks, 4u);
  EXPECT_EQ(f.stats().entries, 0u);
  EXPECT_EQ(f.stats().blocks, 0u);
  f.cache.verify();
}

TEST(Eviction, WritesThatPileUpAreBounded) {
  F f(pages(0), true);
  TokenList a = F::tokens(40 * 256, 1);
  f.insert(a);
  EXPECT_EQ(f.stats().dropped_blocks, 8u);
  EXPECT_EQ(f.found(a), 32 * 256u);
  f.write_all();
  EXPECT_EQ(f.stats().ram_pages, 0u);
  EXPECT_EQ(f.found(a), 32 * 256u);
  f.cache.verify();
}

TEST(Eviction, TheCountBudgetDropsWholeEntries) {
  CacheLimits limits;
  limits.entries = 2;
  F f(limits);
  for (int i = 1; i <= 3; ++i) {
    f.insert(F::tokens(600, i));
  }
  EXPECT_EQ(f.stats().entries, 2u);
  EXPECT_EQ(f.stats().evicted.over_count, 1u);
  EXPECT_EQ(f.found(F::tokens(600, 1)), 0u);
  EXPECT_EQ(f.stats().blocks, 6u);
  f.cache.verify();
}

TEST(Eviction, AResendAtTheCountBudgetEvictsNobody) {
  CacheLimits limits;
  limits.entries = 2;
  F f(limits);
  f.insert(F::tokens(600, 1));
  f.insert(F::tokens(600, 2));
  f.insert(F::tokens(600, 2));
  EXPECT_EQ(f.stats().entries, 2u);
  EXPECT_EQ(f.found(F::tokens(600, 1)), 600u);
}

TEST(Eviction, PinnedEntriesAreSkipped) {
  CacheLimits limits = pages(3);
  limits.entries = 1;
  F f(limits);
  TokenList a = F::tokens(512, 1);
  f.insert(a);
  ASSERT_TRUE(f.cache.set_pinned(f.cache.entries()[0].path[1], 512, true));
  for (int i = 2; i < 6; ++i) {
    f.insert(F::tokens(512, i));
    EXPECT_EQ(f.found(a), 512u);
  }
  EXPECT_EQ(f.stats().entries, 1u);
  EXPECT_EQ(f.cache.shrink_ram(1 << 20), 0u);
  ASSERT_TRUE(f.cache.set_pinned(f.cache.entries()[0].path[1], 512, false));
  EXPECT_EQ(f.cache.shrink_ram(1 << 20), 2 * F::kPageBytes);
  EXPECT_EQ(f.found(a), 0u);
  f.cache.verify();
}

TEST(Eviction, PinningWhatIsNotThereSaysSo) {
  F f;
  EXPECT_FALSE(f.cache.set_pinned(F::root(), 1, true));
  f.insert(F::tokens(300, 1));
  BlockId last = f.cache.entries()[0].path[1];
  EXPECT_FALSE(f.cache.set_pinned(last, 256, true));
  EXPECT_FALSE(f.cache.set_pinned(last, 301, true));
  EXPECT_FALSE(f.cache.set_pinned(last, 280, false));
  EXPECT_TRUE(f.cache.set_pinned(last, 280, true));
  EXPECT_EQ(f.stats().entries, 2u);
  f.cache.verify();
}

}  // namespace
}  // namespace afterglow
