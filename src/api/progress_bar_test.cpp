#include "api/progress_bar.h"

#include <gtest/gtest.h>

namespace afterglow {
namespace {

TEST(ProgressBar, FillsUp) {
  const std::string dots(30, '.');
  const std::string half = std::string(15, '#') + std::string(15, '.');
  EXPECT_EQ(ProgressBar::draw(0, 1000), "[" + dots + "] 0/1000");
  EXPECT_EQ(ProgressBar::draw(500, 1000), "[" + half + "] 500/1000");
  EXPECT_EQ(
      ProgressBar::draw(1000, 1000), "[" + std::string(30, '#') + "] 1000/1000"
  );
}

}  // namespace
}  // namespace afterglow
