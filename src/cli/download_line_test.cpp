#include "cli/download_line.h"

#include <gtest/gtest.h>

namespace afterglow {
namespace {

TEST(DownloadLine, TellsShareSpeedAndFile) {
  const DownloadProgress progress{"m.gguf", 900'000'000, 2'000'000'000};
  EXPECT_EQ(
      DownloadLine::text("o/n", progress, 800'000'000, 2, 80),
      "o/n  45 % of 2.0 GB  50.0 MB/s  m.gguf"
  );
  // Too early to tell a speed.
  EXPECT_EQ(
      DownloadLine::text("o/n", progress, 800'000'000, 0.5, 80),
      "o/n  45 % of 2.0 GB  m.gguf"
  );
}

TEST(DownloadLine, StaysOnItsLine) {
  const DownloadProgress progress{"m.gguf", 1, 2};
  EXPECT_EQ(DownloadLine::text("o/n", progress, 0, 0, 12), "o/n  50 % o");
}

}  // namespace
}  // namespace afterglow
