#include "cli/human.h"

#include <gtest/gtest.h>

namespace afterglow {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(Human, SpansAreCutToTheirLargestUnit) {
  EXPECT_EQ(human_span(-5), "0 s");
  EXPECT_EQ(human_span(60 * kSecond - 1), "59 s");
  EXPECT_EQ(human_span(60 * kSecond), "1 min");
  EXPECT_EQ(human_span(3599 * kSecond), "59 min");
  EXPECT_EQ(human_span(3600 * kSecond), "1 h");
  EXPECT_EQ(human_span(48 * 3600 * kSecond - 1), "47 h");
  EXPECT_EQ(human_span(48 * 3600 * kSecond), "2 d");
}

TEST(Human, NounsHaveAPlural) {
  EXPECT_EQ(human_count(0, "block"), "0 blocks");
  EXPECT_EQ(human_count(1, "entry"), "1 entry");
  EXPECT_EQ(human_count(2, "entry"), "2 entries");
}

}  // namespace
}  // namespace afterglow
