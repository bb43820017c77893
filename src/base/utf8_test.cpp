#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace afterglow {
namespace {

TEST(Utf8, TakesWholeCharacters) {
  for (const char* text :
       {"",
        "plain",
        "\xC2\x80",
        "\xDF\xBF",
        "\xE0\xA0\x80",
        "\xED\x9F\xBF",
        "\xEE\x80\x80",
        "\xF0\x90\x80\x80",
        "\xF4\x8F\xBF\xBF",
        "a\xC3\xA9z"}) {
    EXPECT_TRUE(is_utf8(text)) << text;
  }
  EXPECT_TRUE(is_utf8(std::string_view("\0", 1)));
}

TEST(Utf8, RefusesAllElse) {
  for (const char* text :
       {"\x80",
        "\xC0\x80",
        "\xC1\xBF",
        "\xC3",
        "\xC3z",
        "\xE0\x9F\xBF",
        "\xED\xA0\x80",
        "\xE2\x82",
        "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80",
        "\xFF",
        "ok\xC3"}) {
    EXPECT_FALSE(is_utf8(text)) << text;
  }
  // What follows a character in memory is not looked at.
  EXPECT_FALSE(is_utf8(std::string("\xC3\xA9").substr(0, 1)));
}

}  // namespace
}  // namespace afterglow
