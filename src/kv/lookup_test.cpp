#include <gtest/gtest.h>

#include "kv/cache_fixture.h"

namespace afterglow {
namespace {

using F = CacheFixture;

TEST(Lookup, AnEmptyCacheAndAnEmptyPromptMatchNothing) {
  F f;
  EXPECT_EQ(f.found({}), 0u);
  EXPECT_EQ(f.found({1, 2, 3}), 0u);
  f.insert(F::tokens(300, 1));
  EXPECT_EQ(f.found({}), 0u);
  EXPECT_TRUE(f.cache.lookup(F::root(), {}).path().empty());
}

TEST(Lookup, DivergenceInsideAPageIsExactToTheToken) {
  F f;
  TokenList all = F::tokens(700, 1);
  f.insert(all);
  for (std::size_t agree : {1, 2, 31, 32, 255, 256, 257, 511, 512, 513, 699}) {
    TokenList prompt = all;
    prompt[agree] = -1;
    Match match = f.cache.lookup(F::root(), prompt);
    ASSERT_EQ(match.tokens(), agree);
    ASSERT_EQ(match.path().size(), (agree + kPageTokens - 1) / kPageTokens);
    for (const PathBlock& known : match.path()) {
      std::size_t start = known.block->start;
      std::size_t n = std::min(agree - start, kPageTokens);
      EXPECT_TRUE(F::holds(*known.page, all, start, n));
    }
  }
}

TEST(Lookup, ExactResendFindsAllAndAddsNothing) {
  F f;
  TokenList all = F::tokens(600, 1);
  f.insert(all);
  CacheStats before = f.stats();
  EXPECT_EQ(f.found(all), 600u);
  f.insert(all);
  EXPECT_EQ(f.stats().blocks, before.blocks);
  EXPECT_EQ(f.stats().ram_pages, before.ram_pages);
  EXPECT_EQ(f.stats().entries, 1u);
  EXPECT_EQ(f.cache.entries().at(0).length, 600u);
}

TEST(Lookup, OneTokenPromptsAndPrefixesOfLengthOne) {
  F f;
  f.insert({5});
  EXPECT_EQ(f.found({5}), 1u);
  EXPECT_EQ(f.found({5, 6}), 1u);
  EXPECT_EQ(f.found({6}), 0u);
  f.insert({5, 7, 8});
  EXPECT_EQ(f.found({5, 7, 9}), 2u);
  f.cache.verify();
}

TEST(Lookup, MatchesBelowTheMinimumNeitherCountNorTouchTheOrder) {
  F f;
  TokenList a = F::tokens(100, 1);
  TokenList b = F::tokens(100, 2);
  f.insert(a);
  f.insert(b);
  auto oldest = [&] { return f.cache.entries().at(0).path.at(0); };
  BlockId id_a = block_id(F::root(), 0, a);
  ASSERT_EQ(oldest(), id_a);
  CacheStats before = f.stats();

  EXPECT_EQ(f.found(F::tokens(200, 9, {a.begin(), a.begin() + 31})), 31u);
  EXPECT_EQ(f.stats().hits, before.hits);
  EXPECT_EQ(f.stats().lookups, before.lookups + 1);
  EXPECT_EQ(oldest(), id_a);

  EXPECT_EQ(f.found(F::tokens(200, 9, {a.begin(), a.begin() + 32})), 32u);
  EXPECT_EQ(f.stats().hits, before.hits + 1);
  EXPECT_EQ(f.stats().hit_tokens, before.hit_tokens + 32);
  EXPECT_NE(oldest(), id_a);
}

TEST(Lookup, TheLongestOfManySiblingsWins) {
  F f;
  TokenList all = F::tokens(256, 1);
  for (std::size_t agree = 0; agree < 256; agree += 3) {
    f.insert(F::tokens(256, 2 + agree, {all.begin(), all.begin() + agree}));
  }
  EXPECT_EQ(f.found(all), 255u);
  TokenList other = all;
  other[100] = -1;
  EXPECT_EQ(f.found(other), 100u);
}

TEST(Lookup, RootsDoNotSeeEachOther) {
  F f;
  TokenList all = F::tokens(300, 1);
  f.insert(all);
  EXPECT_EQ(f.found(all, F::root(2)), 0u);
  f.run(all, {}, F::root(2));
  EXPECT_EQ(f.found(all, F::root(2)), 300u);
  EXPECT_EQ(f.stats().blocks, 4u);
  // A block's id is no root.
  EXPECT_EQ(f.found(F::tokens(9, 1), block_id(F::root(), 0, all)), 0u);
}

TEST(Lookup, AUseKeepsTheEntryThatIsReusedInPart) {
  CacheLimits limits;
  limits.entries = 2;
  F f(limits);
  TokenList a = F::tokens(600, 1);
  f.insert(a);
  f.insert(F::tokens(300, 2));
  f.found(TokenList(a.begin(), a.begin() + 400));
  f.insert(F::tokens(300, 3));
  EXPECT_EQ(f.found(a), 600u);
  EXPECT_EQ(f.found(F::tokens(300, 2)), 0u);
}

TEST(Lookup, OfTwoRootsTheLongerMatchWinsAndTheFirstATie) {
  F f;
  BlockId other;
  other.bytes.fill(9);
  TokenList all = F::tokens(700, 1);
  auto insert_below = [&](const BlockId& root, std::size_t length) {
    Trail trail = f.cache.start(root, {}, {});
    F::extend(trail, all, length);
  };
  auto root_and_tokens = [&] {
    Match match = f.cache.lookup(F::root(), all, other);
    return std::make_pair(match.root(), match.tokens());
  };
  insert_below(other, 300);
  EXPECT_EQ(f.found(all), 0u);
  EXPECT_EQ(root_and_tokens(), std::make_pair(other, std::size_t{300}));
  insert_below(F::root(), 300);
  EXPECT_EQ(root_and_tokens(), std::make_pair(F::root(), std::size_t{300}));
  insert_below(other, 301);
  CacheStats before = f.stats();
  EXPECT_EQ(root_and_tokens(), std::make_pair(other, std::size_t{301}));
  // One lookup, one hit, though two roots were looked below.
  EXPECT_EQ(f.stats().lookups - before.lookups, 1u);
  EXPECT_EQ(f.stats().hits - before.hits, 1u);
  EXPECT_EQ(f.stats().hit_tokens - before.hit_tokens, 301u);
  f.cache.verify();
}

}  // namespace
}  // namespace afterglow
