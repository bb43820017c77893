#include "cli/prompt_text.h"

#include <gtest/gtest.h>

namespace afterglow {
namespace {

TEST(Unescape, ReadsLineBreaksAndTabsAlone) {
  EXPECT_EQ(unescape(R"(a\nb\tc)"), "a\nb\tc");
  EXPECT_EQ(unescape(R"(\n\n)"), "\n\n");
  EXPECT_EQ(unescape(R"(\\n)"), "\\\n");  // as mlx_lm: no escape of an escape
  EXPECT_EQ(unescape(R"(\r \x \" C:\dir\)"), R"(\r \x \" C:\dir\)");
  EXPECT_EQ(unescape(""), "");
}

}  // namespace
}  // namespace afterglow
