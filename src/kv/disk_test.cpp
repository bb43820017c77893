#include <gtest/gtest.h>

#include <thread>

#include "kv/cache_fixture.h"

namespace afterglow {
namespace {

using F = CacheFixture;
using std::chrono::milliseconds;

std::vector<BlockPtr> path_of(const TokenList& all) {
  std::vector<BlockPtr> blocks;
  BlockId parent = F::root();
  for (std::size_t start = 0; start < all.size(); start += kPageTokens) {
    std::size_t n = std::min(kPageTokens, all.size() - start);
    blocks.push_back(make_block(parent, start, std::span(all).subspan(start, n))
    );
    parent = blocks.back()->id;
  }
  return blocks;
}

struct OnDisk : CacheFixture {
  explicit OnDisk(CacheLimits limits = {}) : CacheFixture(limits, true) {}
  void add(const BlockPtr& block, std::int64_t last_use = 5) {
    cache.add_disk_block(block, 100, last_use);
  }
  std::vector<BlockId> taken(milliseconds tail_delay) {
    std::vector<BlockId> ids;
    for (auto& dirty : cache.take_dirty(kNow, tail_delay)) {
      ids.push_back(dirty.block->id);
    }
    return ids;
  }
};

TEST(Dirty, ParentsComeFirstAndEachOnce) {
  OnDisk f;
  TokenList all = F::tokens(600, 1);
  f.insert(all);
  auto path = path_of(all);
  std::vector<BlockId> expected{path[0]->id, path[1]->id, path[2]->id};
  EXPECT_EQ(f.taken(milliseconds(0)), expected);
  EXPECT_TRUE(f.taken(milliseconds(0)).empty());
  // A parent handed out again still precedes a child sealed before.
  f.insert(F::tokens(1000, 2, all));
  ASSERT_TRUE(f.cache.requeue(path[0]->id));
  auto again = f.taken(milliseconds(0));
  ASSERT_EQ(again.size(), 3u);
  EXPECT_EQ(again[0], path[0]->id);
}

TEST(Dirty, TailsWaitForTheirDelay) {
  OnDisk f;
  f.insert(F::tokens(300, 1));
  EXPECT_EQ(f.taken(milliseconds(1000)).size(), 1u);
  *f.time += 999'999'999;
  EXPECT_EQ(f.taken(milliseconds(1000)).size(), 0u);
  *f.time += 1;
  EXPECT_EQ(f.taken(milliseconds(1000)).size(), 1u);
}

TEST(Dirty, ATakenTailThatIsSupersededGoesWhenTheLongerIsDurable) {
  OnDisk f;
  TokenList all = F::tokens(400, 1);
  TokenList part(all.begin(), all.begin() + 300);
  f.insert(part);
  BlockId tail = path_of(part)[1]->id;
  BlockId longer = path_of(all)[1]->id;
  auto first = f.taken(milliseconds(0));
  ASSERT_EQ(first.back(), tail);
  f.insert(all);
  f.cache.set_durable(first[0], 100);
  f.cache.set_durable(tail, 100);
  EXPECT_EQ(f.stats().disk_blocks, 2u);
  EXPECT_TRUE(f.cache.take_superseded().empty()) << "the only copy on disk";
  EXPECT_EQ(f.taken(milliseconds(0)), std::vector{longer});
  f.cache.set_durable(longer, 100);
  EXPECT_EQ(f.cache.take_superseded(), std::vector{tail});
  EXPECT_TRUE(f.cache.take_superseded().empty());
  EXPECT_EQ(f.stats().disk_blocks, 2u);
  f.cache.verify();
}

TEST(Dirty, ASupersededTailComesBackWhenTheLongerIsLost) {
  CacheLimits limits;
  limits.ram_bytes = 0;
  OnDisk f(limits);
  TokenList all = F::tokens(400, 1);
  TokenList part(all.begin(), all.begin() + 300);
  f.insert(part);
  f.write_all();
  f.insert(all);
  for (const BlockId& id : f.taken(milliseconds(0))) {
    f.cache.set_write_failed(id);
  }
  EXPECT_EQ(f.found(all), 300u);
  EXPECT_TRUE(f.cache.take_superseded().empty());
  f.cache.verify();
}

TEST(Dirty, AFailedWriteStaysInRamOnly) {
  OnDisk f;
  TokenList all = F::tokens(600, 1);
  f.insert(all);
  for (const BlockId& id : f.taken(milliseconds(0))) {
    f.cache.set_write_failed(id);
    EXPECT_FALSE(f.cache.is_durable(id));
  }
  EXPECT_EQ(f.stats().dirty_blocks, 0u);
  EXPECT_EQ(f.found(all), 600u);
  f.cache.shrink_ram(1);
  EXPECT_EQ(f.found(all), 512u);
  f.cache.verify();
}

TEST(Dirty, RequeueNeedsThePage) {
  OnDisk f;
  TokenList all = F::tokens(256, 1);
  f.insert(all);
  BlockId id = f.write_all()[0]->id;
  EXPECT_TRUE(f.cache.is_durable(id));
  EXPECT_TRUE(f.cache.requeue(id));
  EXPECT_FALSE(f.cache.is_durable(id));
  f.write_all();
  f.cache.shrink_ram(1 << 20);
  EXPECT_FALSE(f.cache.requeue(id));
  EXPECT_FALSE(f.cache.requeue(F::root()));
}

TEST(Dirty, WaitCleanWaitsForWhatWasSealedBefore) {
  PromptCache cache(F::kPageBytes, {}, true);
  auto insert = [&](Token seed) {
    TokenList all = F::tokens(300, seed);
    Trail trail = cache.start(F::root(), {}, {});
    F::extend(trail, all, all.size());
  };
  auto far = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  insert(1);
  std::uint64_t ticket = cache.dirty_ticket();
  EXPECT_FALSE(cache.wait_clean(ticket, std::chrono::steady_clock::now()));
  std::thread writer([&] {
    std::size_t written = 0;
    while (written < 2) {
      for (auto& dirty : cache.take_dirty(far, milliseconds(0))) {
        cache.set_durable(dirty.block->id, 1);
        ++written;
      }
    }
  });
  EXPECT_TRUE(cache.wait_clean(ticket, far));
  writer.join();
  insert(2);
  EXPECT_EQ(cache.dirty_count(), 2u);
  EXPECT_TRUE(cache.wait_clean(ticket, far)) << "sealed later";
}

TEST(Dirty, WhoWaitsForATailWaitsForWhatSupersedesIt) {
  OnDisk f;
  TokenList all = F::tokens(200, 1);
  f.insert({all.begin(), all.begin() + 100});
  std::uint64_t ticket = f.cache.dirty_ticket();
  f.insert(all);
  auto now = std::chrono::steady_clock::now();
  EXPECT_FALSE(f.cache.wait_clean(ticket, now));
  f.write_all();
  EXPECT_TRUE(f.cache.wait_clean(ticket, now));
}

TEST(Dirty, ABlockHandedOutAgainStillHoldsUpWhoWaits) {
  OnDisk f;
  f.insert(F::tokens(256, 1));
  std::uint64_t ticket = f.cache.dirty_ticket();
  auto ids = f.taken(milliseconds(0));
  ASSERT_TRUE(f.cache.requeue(ids[0]));
  auto now = std::chrono::steady_clock::now();
  EXPECT_FALSE(f.cache.wait_clean(ticket, now));
  f.write_all();
  EXPECT_TRUE(f.cache.wait_clean(ticket, now));
}

TEST(Dirty, WakeEndsAWait) {
  PromptCache cache(F::kPageBytes, {}, true);
  auto far = std::chrono::steady_clock::now() + std::chrono::hours(1);
  std::thread writer([&] {
    EXPECT_TRUE(cache.take_dirty(far, milliseconds(0)).empty());
  });
  cache.wake();
  writer.join();
}

TEST(Disk, OrphansAppearWithTheirParents) {
  OnDisk f;
  TokenList all = F::tokens(1000, 1);
  auto path = path_of(all);
  f.add(path[3]);
  f.add(path[2]);
  f.add(path[1]);
  EXPECT_EQ(f.found(all), 0u);
  EXPECT_EQ(f.stats().disk_blocks, 3u);
  f.add(path[0]);
  EXPECT_EQ(f.found(all), 1000u);
  EXPECT_EQ(f.stats().disk_blocks, 4u);
  EXPECT_EQ(f.stats().disk_bytes, 400u);
  EXPECT_EQ(f.stats().entries, 1u);
  f.cache.verify();
}

TEST(Disk, AnOrphanRevivesWhenItsParentIsComputed) {
  OnDisk f;
  TokenList all = F::tokens(512, 1);
  auto path = path_of(all);
  f.add(path[1]);
  f.insert({all.begin(), all.begin() + 256});
  EXPECT_EQ(f.found(all), 512u);
  // And one that is computed itself needs no writing.
  auto more = path_of(F::tokens(512, 2));
  f.add(more[1]);
  f.insert(F::tokens(512, 2));
  EXPECT_EQ(f.taken(milliseconds(0)), (std::vector{path[0]->id, more[0]->id}));
  f.cache.verify();
}

TEST(Disk, AForgedBlockIsIgnored) {
  OnDisk f;
  Block forged = *path_of(F::tokens(256, 1))[0];
  forged.tokens[3] = 0;
  f.add(std::make_shared<const Block>(forged));
  EXPECT_EQ(f.stats().blocks, 0u);
  // A right id does not help one whose place is wrong.
  f.add(make_block(path_of(F::tokens(256, 1))[0]->id, 512, F::tokens(5, 1)));
  f.add(path_of(F::tokens(256, 1))[0]);
  EXPECT_EQ(f.stats().blocks, 1u);
  f.cache.verify();
}

TEST(Disk, ForgettingAFileWithoutAPageForgetsAllBelow) {
  OnDisk f;
  TokenList all = F::tokens(1000, 1);
  auto path = path_of(all);
  for (auto& block : path) {
    f.add(block);
  }
  Match match = f.cache.lookup(F::root(), all);
  f.cache.forget_disk(path[1]->id);
  EXPECT_EQ(f.found(all), 256u);
  EXPECT_EQ(f.cache.entries().at(0).length, 256u);
  match = Match();
  f.cache.verify();
  // The files below are still there and revive with their parent.
  f.add(path[1]);
  EXPECT_EQ(f.found(all), 1000u);
  f.cache.verify();
}

TEST(Disk, ForgettingAFileWithAPageKeepsTheBlock) {
  OnDisk f;
  TokenList all = F::tokens(512, 1);
  f.insert(all);
  auto written = f.write_all();
  f.cache.forget_disk(written[0]->id);
  EXPECT_FALSE(f.cache.is_durable(written[0]->id));
  EXPECT_EQ(f.found(all), 512u);
  EXPECT_TRUE(f.cache.requeue(written[0]->id));
}

TEST(Disk, RestoredPagesStayForTheEntryThatWasUsed) {
  OnDisk f;
  TokenList all = F::tokens(600, 1);
  for (auto& block : path_of(all)) {
    f.add(block);
  }
  {
    Match match = f.cache.lookup(F::root(), all);
    for (const PathBlock& known : match.path()) {
      EXPECT_FALSE(known.page);
      PagePtr page = F::page_for(all, known.block->start);
      EXPECT_EQ(f.cache.attach_page(known.block->id, page), page);
      PagePtr second = F::page_for(all, known.block->start);
      EXPECT_EQ(f.cache.attach_page(known.block->id, second), page);
    }
  }
  EXPECT_EQ(f.found_in_ram(all), 600u);
  PagePtr stray = F::page_for(all, 0);
  EXPECT_EQ(f.cache.attach_page(F::root(9), stray), stray);
  f.cache.verify();
}

TEST(Disk, BlocksWithoutAnEntryGetOneDatedByTheFile) {
  OnDisk f;
  TokenList all = F::tokens(512, 1);
  f.add(path_of(all)[0], 50);
  f.add(path_of(all)[1], 40);
  f.add(path_of(F::tokens(9, 2))[0], 9'000'000'000'000'000'000);
  auto entries = f.cache.entries();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].length, 512u);
  EXPECT_EQ(entries[0].last_use_ns, 50);
  EXPECT_EQ(entries[1].last_use_ns, *f.time) << "the future is now";
}

TEST(Disk, ManifestEntriesFindTheirBlocksInAnyOrder) {
  TokenList all = F::tokens(600, 1);
  auto path = path_of(all);
  EntryRecord record;
  record.path = {path[0]->id, path[1]->id, path[2]->id};
  record.length = 580;
  record.type = EntryType::kSystem;
  record.last_use_ns = 77;
  record.hits = 3;
  record.pinned = true;
  for (int blocks_first : {0, 1, 2, 3}) {
    OnDisk f;
    for (int i = 0; i < blocks_first; ++i) {
      f.add(path[i]);
    }
    f.cache.merge_entries(std::span(&record, 1));
    for (int i = blocks_first; i < 3; ++i) {
      f.add(path[i]);
    }
    auto entries = f.cache.entries();
    ASSERT_EQ(entries.size(), 1u) << blocks_first;
    EXPECT_EQ(entries[0].path, record.path);
    EXPECT_EQ(entries[0].length, 580u);
    EXPECT_EQ(entries[0].type, EntryType::kSystem);
    EXPECT_EQ(entries[0].last_use_ns, 77);
    EXPECT_EQ(entries[0].hits, 3u);
    EXPECT_TRUE(entries[0].pinned);
    f.cache.verify();
  }
}

TEST(Disk, TheNewestLastUseWins) {
  OnDisk f;
  auto path = path_of(F::tokens(200, 1));
  f.add(path[0]);
  EntryRecord record;
  record.path = {path[0]->id};
  record.length = 200;
  for (std::int64_t time : {30, 50, 40}) {
    record.last_use_ns = time;
    record.pinned = time == 50;
    f.cache.merge_entries(std::span(&record, 1));
  }
  EXPECT_EQ(f.cache.entries().at(0).last_use_ns, 50);
  EXPECT_TRUE(f.cache.entries().at(0).pinned);
  record.length = 201;
  f.cache.merge_entries(std::span(&record, 1));
  record.path.clear();
  f.cache.merge_entries(std::span(&record, 1));
  EXPECT_EQ(f.stats().entries, 1u);
}

TEST(Disk, TheNewestDecisionToPinWinsOverAnyUse) {
  OnDisk f;
  auto path = path_of(F::tokens(200, 1));
  f.add(path[0]);
  EntryRecord record;
  record.path = {path[0]->id};
  record.length = 200;
  record.last_use_ns = 40;
  record.pinned = true;
  record.pin_time_ns = 20;
  f.cache.merge_entries(std::span(&record, 1));
  record.pinned = false;
  record.last_use_ns = 60;
  record.pin_time_ns = 10;  // an older decision, used since
  f.cache.merge_entries(std::span(&record, 1));
  EXPECT_TRUE(f.cache.entries().at(0).pinned);
  EXPECT_EQ(f.cache.entries().at(0).pin_time_ns, 20);
  EXPECT_EQ(f.cache.entries().at(0).last_use_ns, 60);
  record.last_use_ns = 30;
  record.pin_time_ns = 50;  // a newer one, not used since
  f.cache.merge_entries(std::span(&record, 1));
  EXPECT_FALSE(f.cache.entries().at(0).pinned);
  EXPECT_EQ(f.cache.entries().at(0).last_use_ns, 60);
  EXPECT_TRUE(f.cache.set_pinned(path[0]->id, 200, true));
  EXPECT_EQ(f.cache.entries().at(0).pin_time_ns, *f.time);
}

TEST(Disk, EvictionTakesTheOldestFromItsEndChildrenFirst) {
  OnDisk f;
  TokenList a = F::tokens(3 * 256, 1);
  TokenList b = F::tokens(3 * 256, 2);
  f.insert(a);
  f.insert(b);
  f.write_all();
  auto path = path_of(a);
  auto gone = f.cache.evict_disk(F::kPageBytes + 1);
  EXPECT_EQ(gone, (std::vector{path[2]->id, path[1]->id}));
  EXPECT_EQ(f.found(a), 256u);
  EXPECT_EQ(f.found(b), 768u);
  EXPECT_EQ(f.stats().disk_blocks, 4u);
  for (auto& id : gone) {
    f.cache.forget_disk(id);
  }
  f.cache.verify();
}

TEST(Disk, EvictionSkipsWhatIsUsedPinnedOrUnwritten) {
  OnDisk f;
  TokenList used = F::tokens(256, 1);
  TokenList pinned = F::tokens(256, 2);
  f.insert(used);
  f.insert(pinned);
  f.cache.set_pinned(path_of(pinned)[0]->id, 256, true);
  f.write_all();
  f.insert(F::tokens(256, 3));
  Match match = f.cache.lookup(F::root(), used);
  EXPECT_TRUE(f.cache.evict_disk(1 << 20).empty());
  EXPECT_EQ(f.stats().entries, 3u);
  match = Match();
  EXPECT_EQ(f.cache.evict_disk(1 << 20).size(), 1u);
}

TEST(Disk, AnEntryOverTheDiskBudgetKeepsHalfAndOthersStay) {
  CacheLimits limits;
  limits.disk_bytes = 10 * F::kPageBytes;
  OnDisk f(limits);
  TokenList a = F::tokens(2 * 256, 1);
  f.insert(a);
  TokenList large = F::tokens(12 * 256, 2);
  f.insert(large);
  f.write_all();
  EXPECT_EQ(f.cache.evict_disk(4 * F::kPageBytes).size(), 4u);
  EXPECT_EQ(f.found(a), 2 * 256u);
  EXPECT_LT(f.found(large), 12 * 256u);
  EXPECT_GE(f.found(large), 5 * 256u);
  f.cache.verify();
}

TEST(Disk, EvictionTakesUncoveredBlocksAndOldOrphans) {
  CacheLimits limits;
  limits.entries = 1;
  OnDisk f(limits);
  TokenList a = F::tokens(512, 1);
  f.insert(a);
  f.write_all();
  TokenList b = F::tokens(256, 2);
  f.insert(b);
  f.write_all();
  EXPECT_EQ(f.stats().entries, 1u);
  EXPECT_EQ(f.found(a), 512u) << "dropped entries leave their files";
  f.add(path_of(F::tokens(512, 3))[1]);
  auto gone = f.cache.evict_disk(2 * F::kPageBytes + 1);
  auto path = path_of(a);
  std::vector expected{
      path[1]->id, path[0]->id, path_of(F::tokens(512, 3))[1]->id};
  EXPECT_EQ(gone, expected);
  EXPECT_EQ(f.found(b), 256u);
  f.cache.verify();
}

}  // namespace
}  // namespace afterglow
