#include "cli/text_table.h"

#include <gtest/gtest.h>

namespace afterglow {
namespace {

TEST(TextTable, NumbersStandRightAndEmptyColumnsAreLeftOut) {
  TextTable table({{"NAME"}, {"SIZE", true}, {"PINNED"}, {"TYPE"}});
  table.add({"a", "1 MB", "", "user"});
  table.add({"longer", "100 MB", "", ""});
  EXPECT_EQ(
      table.format("  "),
      "  NAME      SIZE  TYPE\n"
      "  a         1 MB  user\n"
      "  longer  100 MB\n"
  );
}

}  // namespace
}  // namespace afterglow
