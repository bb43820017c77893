#include "cli/human.h"

#include <gtest/gtest.h>

namespace afterglow {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(Human, BytesHaveOneDigitAfterThePoint) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1000), "1.0 KB");
  EXPECT_EQ(human_bytes(5'902'336), "5.9 MB");
  EXPECT_EQ(human_bytes(999'949), "999.9 KB");
  EXPECT_EQ(human_bytes(999'950), "1.0 MB");
  EXPECT_EQ(human_bytes(20'000'000'000), "20.0 GB");
  EXPECT_EQ(human_bytes(~std::uint64_t{0}), "18446.7 PB");
}

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
