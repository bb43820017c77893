#include "cli/parse_size.h"

#include <gtest/gtest.h>

namespace afterglow {
namespace {

TEST(ParseSize, AgreesWithMlxLm) {
  struct Case {
    const char* text;
    std::uint64_t bytes;
  };
  for (const Case& c : {
           Case{"0", 0},
           Case{"1234", 1234},
           Case{"1M", 1'000'000},
           Case{"1mb", 1'000'000},
           Case{"4GB", 4'000'000'000},
           Case{"4 g", 4'000'000'000},
           Case{"1.5G", 1'500'000'000},
           Case{"0.1G", 100'000'000},
           Case{".5M", 500'000},
           Case{"1.9", 1},
           Case{"18446744073709551615", 18446744073709551615U},
       }) {
    const auto size = parse_size(c.text);
    ASSERT_TRUE(size.ok()) << c.text;
    EXPECT_EQ(*size, c.bytes) << c.text;
  }
}

TEST(ParseSize, KnowsFurtherUnits) {
  EXPECT_EQ(*parse_size("2K"), 2000U);
  EXPECT_EQ(*parse_size("2KiB"), 2048U);
  EXPECT_EQ(*parse_size("1gib"), 1U << 30);
  EXPECT_EQ(*parse_size("1TB"), 1'000'000'000'000U);
}

TEST(ParseSize, RefusesTheRest) {
  for (const char* text :
       {"",
        "G",
        ".",
        "1X",
        "1 G B",
        "-1",
        "+1",
        "1e9",
        "0x10",
        "1GBs",
        "18446744073709551616",
        "99999999999999999999999999999999999999999",
        "20000000TB",
        "1..5"}) {
    EXPECT_FALSE(parse_size(text).ok()) << text;
  }
}

}  // namespace
}  // namespace afterglow
