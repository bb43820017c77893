#include "base/human_bytes.h"

#include <gtest/gtest.h>

namespace afterglow {
namespace {

TEST(HumanBytes, HaveOneDigitAfterThePoint) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1000), "1.0 KB");
  EXPECT_EQ(human_bytes(5'902'336), "5.9 MB");
  EXPECT_EQ(human_bytes(999'949), "999.9 KB");
  EXPECT_EQ(human_bytes(999'950), "1.0 MB");
  EXPECT_EQ(human_bytes(20'000'000'000), "20.0 GB");
  EXPECT_EQ(human_bytes(~std::uint64_t{0}), "18446.7 PB");
}

}  // namespace
}  // namespace afterglow
