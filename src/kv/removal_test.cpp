#include <gtest/gtest.h>

#include "kv/cache_fixture.h"

namespace afterglow {
namespace {

using F = CacheFixture;
using std::chrono::milliseconds;

constexpr std::int64_t kSecond = 1'000'000'000;

CacheLimits mortal(std::int64_t ttl_ns = 10 * kSecond) {
  CacheLimits limits;
  limits.ttl_ns = ttl_ns;
  return limits;
}

EntryRecord only_entry(const CacheFixture& f) {
  auto entries = f.cache.entries();
  EXPECT_EQ(entries.size(), 1u);
  return entries.empty() ? EntryRecord{} : entries[0];
}

TEST(Expiry, AnEntryLivesItsTimeAfterTheLastUse) {
  F f(mortal());
  TokenList a = F::tokens(600, 1);
  f.insert(a);
  *f.time += 9 * kSecond;
  EXPECT_EQ(f.found(a), 600u);
  *f.time += 9 * kSecond;
  EXPECT_EQ(f.found(a), 600u) << "a use begins its time anew";
  *f.time += 10 * kSecond;
  EXPECT_EQ(f.found(a), 0u) << "a lookup must not hit what has expired";
  EXPECT_EQ(f.stats().evicted.expired, 1u);
  EXPECT_EQ(f.stats().blocks, 0u);
  f.cache.verify();
}

TEST(Expiry, WithoutATimeNothingExpires) {
  F f;
  TokenList a = F::tokens(600, 1);
  f.insert(a);
  *f.time += 1'000'000 * kSecond;
  EXPECT_EQ(f.cache.expire(), 0u);
  EXPECT_EQ(f.found(a), 600u);
}

TEST(Expiry, FilesThatOnlyTheExpiredCoveredGoChildrenFirst) {
  F f(mortal(), true);
  TokenList shared = F::tokens(512, 1);
  f.insert(F::tokens(900, 2, shared));
  f.insert(F::tokens(900, 3, shared));
  f.write_all();
  ASSERT_EQ(f.cache.durable_blocks().size(), 6u);
  *f.time += 6 * kSecond;
  EXPECT_EQ(f.found(F::tokens(900, 3, shared)), 900u);
  *f.time += 6 * kSecond;
  EXPECT_EQ(f.cache.expire(), 1u);
  auto gone = f.cache.take_superseded();
  ASSERT_EQ(gone.size(), 2u);
  auto left = f.cache.durable_blocks();
  EXPECT_EQ(left.size(), 4u);
  TokenList expired = F::tokens(900, 2, shared);
  BlockId parent = block_id(F::root(), 0, std::span(expired).first(256));
  parent = block_id(parent, 256, std::span(expired).subspan(256, 256));
  BlockId third = block_id(parent, 512, std::span(expired).subspan(512, 256));
  EXPECT_EQ(gone[1], third);
  EXPECT_EQ(f.found(expired), 512u) << "the shared part lives on";
  f.cache.verify();
}

TEST(Expiry, PinnedAndRunningOnesStay) {
  F f(mortal());
  TokenList a = F::tokens(300, 1);
  f.insert(a);
  EntryRecord entry = only_entry(f);
  ASSERT_TRUE(f.cache.set_pinned(entry.path.back(), entry.length, true));
  TokenList b = F::tokens(300, 2);
  Trail running = f.run(b);
  *f.time += 100 * kSecond;
  EXPECT_EQ(f.cache.expire(), 0u);
  EXPECT_EQ(f.found(a), 300u);
  running = Trail();
  EXPECT_EQ(f.cache.expire(), 1u);
  EXPECT_EQ(f.found(b), 0u);
}

TEST(Expiry, ABlockBeingWrittenGoesOnceItIs) {
  F f(mortal(), true);
  f.insert(F::tokens(256, 1));
  auto taken = f.cache.take_dirty(F::kNow, milliseconds(0));
  ASSERT_EQ(taken.size(), 1u);
  *f.time += 100 * kSecond;
  EXPECT_EQ(f.cache.expire(), 1u);
  EXPECT_TRUE(f.cache.take_superseded().empty());
  f.cache.set_durable(taken[0].block->id, F::kPageBytes);
  EXPECT_EQ(
      f.cache.take_superseded(), std::vector<BlockId>{taken[0].block->id}
  );
  EXPECT_EQ(f.stats().blocks, 0u);
  f.cache.verify();
}

TEST(Expiry, AManifestsEntryKeepsItsOwnTimeUntilUsed) {
  F f({}, true);
  TokenList a = F::tokens(256, 1);
  BlockPtr block = make_block(F::root(), 0, a);
  f.cache.add_disk_block(block, F::kPageBytes, *f.time);
  EntryRecord record;
  record.path = {block->id};
  record.length = 256;
  record.last_use_ns = *f.time;
  record.ttl_ns = 5 * kSecond;
  f.cache.merge_entries({&record, 1});
  EXPECT_EQ(only_entry(f).ttl_ns, 5 * kSecond);
  *f.time += 6 * kSecond;
  EXPECT_EQ(f.found(a), 0u);
  EXPECT_EQ(f.cache.take_superseded(), std::vector<BlockId>{block->id});
}

TEST(Removal, OneEntryGoesWithWhatOnlyItCovers) {
  F f({}, true);
  TokenList shared = F::tokens(512, 1);
  TokenList a = F::tokens(700, 2, shared);
  TokenList b = F::tokens(700, 3, shared);
  f.insert(a);
  f.insert(b);
  f.write_all();
  for (const EntryRecord& entry : f.cache.entries()) {
    f.cache.set_pinned(entry.path.back(), entry.length, true);
  }
  BlockId last = f.cache.entries()[0].path.back();
  EXPECT_FALSE(f.cache.remove(last, 699));
  EXPECT_FALSE(f.cache.remove(last, 700, F::root(9))) << "another root's";
  EXPECT_TRUE(f.cache.remove(last, 700, F::root()));
  EXPECT_FALSE(f.cache.remove(last, 700)) << "it is gone";
  EXPECT_EQ(f.cache.take_superseded(), std::vector<BlockId>{last});
  EXPECT_EQ(f.found(a) + f.found(b), 512u + 700u);
  EXPECT_EQ(f.stats().evicted.removed, 1u);
  f.cache.verify();
}

TEST(Removal, WhatWasNotYetWrittenIsNotWrittenAnyMore) {
  F f({}, true);
  f.insert(F::tokens(600, 1));
  EXPECT_EQ(f.cache.dirty_blocks().size(), 3u);
  std::uint64_t ticket = f.cache.dirty_ticket();
  EntryRecord entry = only_entry(f);
  EXPECT_TRUE(f.cache.remove(entry.path.back(), entry.length));
  EXPECT_TRUE(f.cache.take_dirty(F::kNow, milliseconds(0)).empty());
  EXPECT_TRUE(f.cache.wait_clean(ticket, F::kNow)) << "nobody waits for it";
  EXPECT_EQ(f.stats().blocks, 0u);
}

TEST(Removal, ARunningSequencesEntryIsRefused) {
  F f;
  Trail running = f.run(F::tokens(300, 1));
  EntryRecord entry = only_entry(f);
  EXPECT_FALSE(f.cache.remove(entry.path.back(), entry.length));
  running = Trail();
  EXPECT_TRUE(f.cache.remove(entry.path.back(), entry.length));
}

TEST(Removal, ClearTakesAllBelowItsRootOnly) {
  F f({}, true);
  TokenList a = F::tokens(700, 1);
  f.run(a, {}, F::root(1));
  f.run(a, {}, F::root(2));
  f.write_all();
  EXPECT_EQ(f.cache.entries(F::root(1)).size(), 1u);
  EXPECT_EQ(f.cache.entries(F::root(1))[0].root, F::root(1));
  auto files = f.cache.clear(F::root(1));
  EXPECT_EQ(files.size(), 3u);
  EXPECT_EQ(f.found(a, F::root(1)), 0u);
  EXPECT_EQ(f.found(a, F::root(2)), 700u);
  EXPECT_EQ(f.cache.entries(F::root(1)).size(), 0u);
  EXPECT_EQ(f.cache.clear().size(), 3u);
  EXPECT_EQ(f.stats().blocks, 0u);
  EXPECT_EQ(f.stats().disk_bytes, 0u);
  f.cache.verify();
}

TEST(Removal, ClearTakesOrphansAndSupersededTailsToo) {
  F f({}, true);
  TokenList a = F::tokens(600, 1);
  BlockPtr first = make_block(F::root(), 0, std::span(a).first(256));
  BlockPtr second = make_block(first->id, 256, std::span(a).subspan(256, 256));
  f.cache.add_disk_block(second, F::kPageBytes, *f.time);
  f.insert(F::tokens(100, 5));
  f.write_all();
  f.insert(F::tokens(120, 6, F::tokens(100, 5)));  // supersedes, not written
  EXPECT_EQ(f.cache.clear().size(), 2u);
  EXPECT_TRUE(f.cache.take_superseded().empty()) << "named once";
  EXPECT_EQ(f.stats().disk_blocks, 0u);
  f.cache.verify();
}

TEST(Removal, ClearLeavesWhatARequestUsesUntilItIsDone) {
  F f({}, true);
  TokenList a = F::tokens(600, 1);
  f.insert(a);
  f.write_all();
  Match match = f.cache.lookup(F::root(), a);
  EXPECT_TRUE(f.cache.clear().empty());
  EXPECT_NE(match.path()[0].page, nullptr);
  match = Match();
  EXPECT_EQ(f.cache.take_superseded().size(), 3u);
  EXPECT_EQ(f.found(a), 0u);
  f.cache.verify();
}

TEST(Removal, ARequestThatGoesOnAfterAClearKeepsItsBlocks) {
  F f({}, true);
  TokenList a = F::tokens(600, 1);
  Trail running = f.run(a);
  f.write_all();
  EXPECT_TRUE(f.cache.clear().empty());
  running = Trail();
  EXPECT_EQ(f.found(a), 600u);
  EXPECT_TRUE(f.cache.take_superseded().empty());
}

TEST(Removal, TheWriterLearnsThatNobodyWantsItsBlock) {
  F f({}, true);
  f.insert(F::tokens(256, 1));
  BlockId id = f.cache.take_dirty(F::kNow, milliseconds(0))[0].block->id;
  EXPECT_TRUE(f.cache.set_durable(id, F::kPageBytes));
  f.cache.clear();
  EXPECT_FALSE(f.cache.set_durable(id, F::kPageBytes));
}

TEST(Pins, CountAsUsesAndStayBelowTheirRoot) {
  F f;
  f.insert(F::tokens(300, 1));
  f.insert(F::tokens(300, 2));
  BlockId first = f.cache.entries()[0].path.back();
  *f.time += kSecond;
  EXPECT_FALSE(f.cache.set_pinned(first, 300, true, F::root(7)));
  EXPECT_TRUE(f.cache.set_pinned(first, 300, true, F::root()));
  EXPECT_EQ(f.cache.entries().back().path.back(), first);
  EXPECT_EQ(f.cache.entries().back().last_use_ns, *f.time);
}

}  // namespace
}  // namespace afterglow
