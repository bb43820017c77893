#include "engine/prompt_shares.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace afterglow {
namespace {

using Shares = std::vector<std::size_t>;

TEST(PromptShares, OneReaderGetsAllThatItNeeds) {
  std::vector<PromptReader> one{{1000, "a"}};
  EXPECT_EQ(share_prompt_budget(128, one, 0), Shares{128});
  one[0].left = 5;
  EXPECT_EQ(share_prompt_budget(128, one, 0), Shares{5});
  EXPECT_TRUE(share_prompt_budget(128, {}, 0).empty());
}

TEST(PromptShares, HalfIsEvenAndHalfIsForTheShortest) {
  std::vector<PromptReader> readers{{1000, "a"}, {500, "a"}};
  EXPECT_EQ(share_prompt_budget(128, readers, 0), (Shares{32, 96}));
  readers[1].left = 60;
  EXPECT_EQ(share_prompt_budget(128, readers, 0), (Shares{68, 60}));
}

TEST(PromptShares, TheEvenHalfIsEvenBetweenClients) {
  std::vector<PromptReader> readers(9, {100, "many"});
  readers.push_back({5000, "one"});
  Shares shares = share_prompt_budget(128, readers, 0);
  EXPECT_EQ(shares.back(), 32u);
}

TEST(PromptShares, NeitherMoreThanTheBudgetNorLessThanThereIs) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<PromptReader> readers(1 + random() % 12);
    std::size_t left = 0;
    for (PromptReader& reader : readers) {
      reader.left = 1 + random() % 300;
      reader.client = std::string_view("abc").substr(random() % 3, 1);
      left += reader.left;
    }
    std::size_t budget = 1 + random() % 300;
    Shares shares = share_prompt_budget(budget, readers, random());
    for (std::size_t i = 0; i < readers.size(); ++i) {
      EXPECT_LE(shares[i], readers[i].left);
    }
    EXPECT_EQ(
        std::accumulate(shares.begin(), shares.end(), std::size_t{0}),
        std::min(budget, left)
    ) << round;
  }
}

TEST(PromptShares, WithFewerTokensThanReadersAllGoOnInTheEnd) {
  std::vector<PromptReader> readers{
      {900, "a"}, {100, "a"}, {800, "b"}, {700, "a"}, {600, "b"}};
  Shares sums(readers.size());
  for (std::size_t turn = 0; turn < 60; ++turn) {
    Shares shares = share_prompt_budget(1, readers, turn);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] += shares[i];
    }
  }
  for (std::size_t sum : sums) {
    EXPECT_GE(sum, 5u);
  }
}

}  // namespace
}  // namespace afterglow
