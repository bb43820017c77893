#include "server/log_value.h"

#include <gtest/gtest.h>

#include <string>

namespace afterglow {
namespace {

TEST(LogValue, OneWordIsBare) {
  for (const std::string word :
       {"chatcmpl-1f", "/v1/chat/completions", "127.0.0.1:80", "'x'", "%"}) {
    EXPECT_EQ(log_value(word), word);
  }
}

TEST(LogValue, AllElseIsQuotedAndStaysInItsQuotes) {
  EXPECT_EQ(log_value(""), R"("")");
  EXPECT_EQ(log_value("two words"), R"("two words")");
  EXPECT_EQ(log_value("a=b"), R"("a=b")");
  EXPECT_EQ(log_value(R"(a" level=x)"), R"("a\" level=x")");
  EXPECT_EQ(log_value(R"(\)"), R"("\\")");
  EXPECT_EQ(log_value(R"(\" x=")"), R"("\\\" x=\"")");
  EXPECT_EQ(log_value("a\nb\x1b[2J\x7f"), R"("a\x0ab\x1b[2J\x7f")");
  EXPECT_EQ(log_value("\xc3\xa9\xff"), R"("\xc3\xa9\xff")");
}

TEST(LogLine, OnlyControlCharactersAreWrittenOtherwise) {
  EXPECT_EQ(log_line("a \"b\" c=\xc3\xa9"), "a \"b\" c=\xc3\xa9");
  EXPECT_EQ(log_line("a\r\nb\tc\x1b\x7f"), R"(a\x0d\x0ab\x09c\x1b\x7f)");
}

}  // namespace
}  // namespace afterglow
