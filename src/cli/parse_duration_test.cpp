#include "cli/parse_duration.h"

#include <gtest/gtest.h>

namespace afterglow {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(ParseDuration, UnitsAreThoseOfAWatch) {
  EXPECT_EQ(*parse_duration("0"), 0);
  EXPECT_EQ(*parse_duration("90"), 90 * kSecond);
  EXPECT_EQ(*parse_duration("90s"), 90 * kSecond);
  EXPECT_EQ(*parse_duration("15m"), 900 * kSecond);
  EXPECT_EQ(*parse_duration("12h"), 12 * 3600 * kSecond);
  EXPECT_EQ(*parse_duration("7d"), 7 * 86400 * kSecond);
  EXPECT_EQ(*parse_duration("2w"), 14 * 86400 * kSecond);
}

TEST(ParseDuration, AnythingElseIsAnError) {
  for (const char* text :
       {"",
        "d",
        "-1d",
        "-0",
        "+1d",
        "1.5d",
        "1 d",
        "1D",
        "1day",
        "1m30s",
        "99999999999999999999",
        "73001d"}) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_NE(parsed.error().message.find("7d"), std::string::npos);
  }
  EXPECT_TRUE(parse_duration("73000d").ok());
}

}  // namespace
}  // namespace afterglow
