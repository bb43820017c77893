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

TEST(Trail, IdsChainAndPagesAreShared) {
  F f;
  TokenList all = F::tokens(600, 1);
  Trail trail = f.cache.start(F::root(), {}, {});
  EXPECT_EQ(trail.last_id(), F::root());
  F::extend(trail, all, 600);
  EXPECT_EQ(trail.length(), 600u);
  BlockId first = block_id(F::root(), 0, std::span(all).first(256));
  BlockId second = block_id(first, 256, std::span(all).subspan(256, 256));
  EXPECT_EQ(trail.last_id(), second);
  Trail again = f.cache.start(F::root(), {}, {});
  F::extend(again, all, 600);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(trail.page(i), again.page(i));
  }
  f.cache.verify();
}

TEST(Trail, WhatIsSealedIsFoundWhileTheSequenceRuns) {
  F f;
  TokenList all = F::tokens(600, 1);
  Trail trail = f.cache.start(F::root(), {}, {});
  F::extend(trail, all, 256);
  EXPECT_EQ(f.found(all), 256u);
  F::extend(trail, all, 600);
  EXPECT_EQ(f.found(all), 600u);
}

TEST(Trail, AbandonedBeforeASealLeavesNothing) {
  F f;
  { Trail trail = f.cache.start(F::root(), {}, {{EntryType::kUser, 10}}); }
  EXPECT_EQ(f.stats().entries, 0u);
  EXPECT_EQ(f.stats().blocks, 0u);
  f.cache.verify();
}

TEST(Trail, DroppingHasNoHoles) {
  F f(pages(4));
  TokenList all = F::tokens(7 * 256, 1);
  Trail trail = f.cache.start(F::root(), {}, {});
  F::extend(trail, all, all.size());
  EXPECT_EQ(trail.length(), all.size());
  EXPECT_EQ(f.stats().dropped_blocks, 3u);
  EXPECT_EQ(f.found(all), 4 * 256u);
  // Room that comes up later must not be used for a block after the gap.
  f.cache.shrink_ram(F::kPageBytes);
  trail.append(F::tokens(256, 2), F::page_for(F::tokens(256, 2), 0));
  EXPECT_EQ(f.stats().dropped_blocks, 4u);
  EXPECT_EQ(f.found(all), 4 * 256u);
  EXPECT_TRUE(F::holds(*trail.page(6), all, 6 * 256, 256));
  trail = Trail();
  f.cache.verify();
}

TEST(Trail, BoundariesBecomeEntriesOfTheirType) {
  F f;
  TokenList all = F::tokens(600, 1);
  f.insert(all, {{EntryType::kUser, 500}, {EntryType::kSystem, 100}});
  auto entries = f.cache.entries();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].type, EntryType::kAssistant);
  EXPECT_EQ(entries[0].length, 600u);
  EXPECT_EQ(entries[0].path.size(), 3u);
  EXPECT_EQ(entries[1].type, EntryType::kUser);
  EXPECT_EQ(entries[1].length, 500u);
  EXPECT_EQ(entries[1].path.size(), 2u);
  EXPECT_EQ(entries[2].type, EntryType::kSystem);
  EXPECT_EQ(entries[2].length, 100u);
  EXPECT_EQ(entries[2].path.size(), 1u);
}

TEST(Trail, ABoundaryComesIntoBeingOnlyWhenCovered) {
  F f;
  TokenList all = F::tokens(600, 1);
  Trail trail = f.cache.start(F::root(), {}, {{EntryType::kSystem, 300}});
  F::extend(trail, all, 256);
  EXPECT_EQ(f.stats().entries_by_type[2], 0u);
  F::extend(trail, all, 512);
  EXPECT_EQ(f.stats().entries_by_type[2], 1u);
}

TEST(Trail, ALongerTurnAbsorbsItsPrefixesButNotSystemOrPinned) {
  F f;
  TokenList all = F::tokens(2000, 1);
  auto first = [&](std::size_t n) {
    return TokenList(all.begin(), all.begin() + n);
  };
  f.insert(first(600), {{EntryType::kSystem, 100}, {EntryType::kUser, 500}});
  ASSERT_EQ(f.stats().entries, 3u);
  f.insert(first(900), {{EntryType::kSystem, 100}, {EntryType::kUser, 700}});
  auto entries = f.cache.entries();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].length, 900u);
  EXPECT_EQ(entries[1].length, 700u);
  EXPECT_EQ(entries[2].length, 100u);
  ASSERT_TRUE(f.cache.set_pinned(entries[1].path.back(), 700, true));
  f.insert(first(1500));
  entries = f.cache.entries();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].length, 1500u);
  EXPECT_EQ(entries[1].length, 700u);
  EXPECT_TRUE(entries[1].pinned);
  f.cache.verify();
}

TEST(Trail, APrefixInASiblingBlockIsAbsorbedToo) {
  F f;
  TokenList a = F::tokens(256, 1);
  // The boundary's entry lies in a's block; b shares its tokens only.
  f.insert(a, {{EntryType::kUser, 100}});
  f.insert(F::tokens(256, 2, {a.begin(), a.begin() + 100}));
  EXPECT_EQ(f.stats().entries_by_type[1], 0u);
  EXPECT_EQ(f.stats().entries, 2u);
}

TEST(Trail, EqualTokensAreOneEntryOfTheHigherType) {
  F f;
  TokenList a = F::tokens(300, 1);
  f.insert(a, {{EntryType::kSystem, 300}});
  f.insert(a);
  ASSERT_EQ(f.stats().entries, 1u);
  EXPECT_EQ(f.cache.entries()[0].type, EntryType::kSystem);
}

TEST(Trail, ALongerTailSupersedesAShorter) {
  F f({}, true);
  TokenList all = F::tokens(500, 1);
  f.insert({all.begin(), all.begin() + 300}, {{EntryType::kSystem, 290}});
  f.insert({all.begin(), all.begin() + 400});
  EXPECT_EQ(f.stats().blocks, 2u);
  EXPECT_EQ(f.stats().ram_pages, 2u);
  EXPECT_EQ(f.found(all), 400u);
  // Superseded before it was written, so never written.
  EXPECT_EQ(f.write_all().size(), 2u);
  EXPECT_TRUE(f.cache.take_superseded().empty());
  auto entries = f.cache.entries();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].path, entries[1].path);
  EXPECT_EQ(entries[1].length, 290u);
  f.cache.verify();
}

TEST(Trail, AShorterTailSharesTheLongerOne) {
  F f({}, true);
  TokenList all = F::tokens(400, 1);
  f.insert(all);
  Trail trail = f.run({all.begin(), all.begin() + 300});
  EXPECT_EQ(f.stats().blocks, 2u);
  EXPECT_TRUE(F::holds(*trail.page(1), all, 256, 144));
  trail = Trail();
  EXPECT_EQ(f.stats().entries, 2u);
  f.cache.verify();
}

TEST(Trail, TwoSequencesOfOnePromptPartInPeace) {
  F f;
  TokenList a = F::tokens(700, 1);
  TokenList b = F::tokens(700, 2, {a.begin(), a.begin() + 300});
  Trail x = f.cache.start(F::root(), {}, {{EntryType::kUser, 290}});
  Trail y = f.cache.start(F::root(), {}, {{EntryType::kUser, 290}});
  for (std::size_t end : {256, 512, 700}) {
    F::extend(x, a, end);
    F::extend(y, b, end);
    f.cache.verify();
  }
  x = Trail();
  y = Trail();
  EXPECT_EQ(f.found(a), 700u);
  EXPECT_EQ(f.found(b), 700u);
  EXPECT_EQ(f.stats().entries, 3u);
  f.cache.verify();
}

}  // namespace
}  // namespace afterglow
