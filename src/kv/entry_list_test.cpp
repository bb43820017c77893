#include "kv/entry_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "kv/cache_fixture.h"
#include "kv/entry_name.h"

namespace afterglow {
namespace {

using BlockTokens = std::map<BlockId, TokenList>;

void add_blocks(const TokenList& prompt, BlockTokens& blocks) {
  BlockId parent = CacheFixture::root();
  for (std::size_t start = 0; start < prompt.size(); start += kPageTokens) {
    const std::size_t n = std::min(kPageTokens, prompt.size() - start);
    const auto tokens = std::span(prompt).subspan(start, n);
    parent = block_id(parent, start, tokens);
    blocks[parent] = TokenList(tokens.begin(), tokens.end());
  }
}

TokenList tokens_of(const EntryRecord& record, const BlockTokens& blocks) {
  TokenList all;
  for (const BlockId& id : record.path) {
    const TokenList& tokens = blocks.at(id);
    all.insert(all.end(), tokens.begin(), tokens.end());
  }
  all.resize(record.length);
  return all;
}

std::map<std::size_t, const ListedEntry*> by_order(
    const std::vector<ListedEntry>& list
) {
  std::map<std::size_t, const ListedEntry*> sorted;
  for (const ListedEntry& entry : list) sorted[entry.order] = &entry;
  return sorted;
}

/// Prompts that fork anywhere from others, also at and near block ends.
std::vector<TokenList> forking_prompts() {
  std::mt19937 random(7);
  std::vector<TokenList> prompts;
  for (int i = 0; i < 60; ++i) {
    TokenList prompt;
    if (!prompts.empty() && random() % 8 != 0) {
      const TokenList& other = prompts[random() % prompts.size()];
      const std::size_t cuts[] = {
          random() % (other.size() + 1), 255, 256, 257, 512};
      prompt = other;
      prompt.resize(std::min(other.size(), cuts[random() % 5]));
    }
    const std::size_t more = random() % 400 + 1;
    prompts.push_back(CacheFixture::tokens(
        prompt.size() + more, 1 + random() % 900, std::move(prompt)
    ));
  }
  return prompts;
}

std::size_t shared(const TokenList& a, const TokenList& b) {
  const auto agree = std::ranges::mismatch(a, b);
  return static_cast<std::size_t>(agree.in1 - a.begin());
}

TEST(EntryList, OrderAndSharingAreThoseOfTheTokens) {
  CacheFixture fixture;
  BlockTokens blocks;
  for (const TokenList& prompt : forking_prompts()) {
    fixture.insert(prompt);
    add_blocks(prompt, blocks);
  }
  const auto list = fixture.cache.list_entries();
  ASSERT_GT(list.size(), 20u);
  const auto sorted = by_order(list);
  ASSERT_EQ(sorted.size(), list.size());
  ASSERT_EQ(sorted.rbegin()->first, list.size() - 1);
  TokenList before;
  for (const auto& [order, entry] : sorted) {
    const TokenList these = tokens_of(entry->record, blocks);
    EXPECT_LT(before, these);
    EXPECT_EQ(entry->shared_tokens, shared(before, these));
    before = these;
  }
}

TEST(EntryList, EachBranchOfTheTreeIsOneEntrys) {
  CacheFixture fixture;
  BlockTokens blocks;
  for (const TokenList& prompt : forking_prompts()) {
    fixture.insert(prompt);
    add_blocks(prompt, blocks);
  }
  const auto list = fixture.cache.list_entries();
  std::vector<TokenList> texts;
  for (const auto& [order, entry] : by_order(list)) {
    texts.push_back(tokens_of(entry->record, blocks));
  }
  std::size_t forks = 0;
  for (const auto& [order, entry] : by_order(list)) {
    const TokenList& these = texts[order];
    // The nodes on its way, and the one that begins the part that is its own.
    std::set<std::size_t> nodes = {0, these.size()};
    for (const TokenList& other : texts) nodes.insert(shared(these, other));
    const std::size_t known = order == 0 ? 0 : shared(texts[order - 1], these);
    std::vector<std::size_t> wanted(nodes.lower_bound(known), nodes.end());
    wanted.pop_back();
    std::vector<std::size_t> found;
    for (const Branch& branch : entry->branches) {
      found.push_back(branch.at);
      const std::size_t from = branch.at - branch.lead;
      EXPECT_EQ(branch.lead, std::min(branch.at, kBranchLead));
      const auto end = these.begin() + static_cast<std::ptrdiff_t>(std::min(
                                           from + kBranchTokens, these.size()
                                       ));
      EXPECT_EQ(
          branch.tokens,
          TokenList(these.begin() + static_cast<std::ptrdiff_t>(from), end)
      );
    }
    EXPECT_EQ(found, wanted) << "entry " << order;
    forks += found.size() - 1;
  }
  EXPECT_GT(forks, 5u);
}

TEST(EntryList, TheListKeepsTheOrderOfUseAndItsRecords) {
  CacheFixture fixture;
  for (Token seed : {3, 1, 2}) {
    fixture.insert(CacheFixture::tokens(300, seed));
  }
  const auto list = fixture.cache.list_entries();
  const auto records = fixture.cache.entries();
  ASSERT_EQ(list.size(), 3u);
  ASSERT_EQ(records.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(entry_name(list[i].record), entry_name(records[i]));
  }
  EXPECT_EQ(list[0].order, 2u);
  EXPECT_EQ(list[1].order, 0u);
  EXPECT_EQ(list[2].order, 1u);
}

TEST(EntryList, BoundariesOfOnePromptShareAllOfTheShorter) {
  CacheFixture fixture;
  fixture.insert(
      CacheFixture::tokens(700, 1),
      {{EntryType::kSystem, 100}, {EntryType::kUser, 600}}
  );
  const auto list = fixture.cache.list_entries();
  const auto sorted = by_order(list);
  std::vector<std::size_t> lengths;
  std::vector<std::size_t> shared;
  for (const auto& [order, entry] : sorted) {
    lengths.push_back(entry->record.length);
    shared.push_back(entry->shared_tokens);
  }
  ASSERT_GE(lengths.size(), 2u);
  EXPECT_EQ(lengths.front(), 100u);
  EXPECT_EQ(lengths.back(), 700u);
  EXPECT_TRUE(std::ranges::is_sorted(lengths));
  for (std::size_t i = 1; i < shared.size(); ++i) {
    EXPECT_EQ(shared[i], lengths[i - 1]);
  }
}

TEST(EntryList, EqualTokensBelowOtherRootsAreNotShared) {
  CacheFixture fixture;
  const TokenList prompt = CacheFixture::tokens(300, 1);
  fixture.run(prompt);
  fixture.run(prompt, {}, CacheFixture::root(2));
  for (const ListedEntry& entry : fixture.cache.list_entries()) {
    EXPECT_EQ(entry.shared_tokens, 0u);
  }
  const auto one = fixture.cache.list_entries(CacheFixture::root(2));
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].record.root, CacheFixture::root(2));
}

TEST(EntryList, TiersAndBytesAreThoseOfItsBlocks) {
  CacheFixture fixture({}, true);
  fixture.insert(CacheFixture::tokens(600, 1));
  const auto entry = [&] { return fixture.cache.list_entries().at(0); };
  EXPECT_EQ(entry().ram_blocks, 3u);
  EXPECT_EQ(entry().disk_blocks, 0u);
  EXPECT_EQ(entry().bytes, 3 * CacheFixture::kPageBytes);
  for (const auto& dirty : fixture.cache.take_dirty(CacheFixture::kNow, {})) {
    fixture.cache.set_durable(dirty.block->id, 1000);
  }
  EXPECT_EQ(entry().ram_blocks, 3u);
  EXPECT_EQ(entry().disk_blocks, 3u);
  EXPECT_EQ(entry().bytes, 3000u);
  fixture.cache.shrink_ram(CacheFixture::kPageBytes);
  EXPECT_EQ(entry().ram_blocks, 2u);
  EXPECT_EQ(entry().disk_blocks, 3u);
  EXPECT_EQ(entry().bytes, 3000u);
}

}  // namespace
}  // namespace afterglow
