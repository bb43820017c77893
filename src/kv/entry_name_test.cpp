#include "kv/entry_name.h"

#include <gtest/gtest.h>

namespace afterglow {
namespace {

EntryRecord entry(std::uint8_t byte, std::size_t length) {
  EntryRecord record;
  record.path.resize(2);
  record.path.back().bytes.fill(byte);
  record.length = length;
  return record;
}

TEST(EntryName, NamesTheLastBlockAndTheLength) {
  EntryRecord e = entry(0xab, 300);
  std::string hex;
  for (int i = 0; i < 32; ++i) {
    hex += "ab";
  }
  EXPECT_EQ(entry_name(e), hex + ":300");
  EXPECT_EQ(short_entry_name(e), "abababababab:300");
}

TEST(EntryName, MatchesByBeginningAndLength) {
  EntryRecord e = entry(0xab, 300);
  for (const char* text : {"abab", "ABAB:300", "abababababab:300"}) {
    auto name = parse_entry_name(text);
    ASSERT_TRUE(name.ok()) << text;
    EXPECT_TRUE(name->matches(e)) << text;
  }
  EXPECT_TRUE(parse_entry_name(entry_name(e))->matches(e));
  EXPECT_FALSE(parse_entry_name("abab:299")->matches(e));
  EXPECT_FALSE(parse_entry_name("ababac")->matches(e));
  EXPECT_FALSE(parse_entry_name("abab")->matches(entry(0xac, 300)));
}

TEST(EntryName, OtherTextIsRefused) {
  for (const char* text :
       {"",
        "abc",
        "xyzw",
        "abab:",
        "abab:x",
        "abab:3 ",
        "abab:-1",
        "abab:99999999999999999999999",
        "../abab"}) {
    auto name = parse_entry_name(text);
    ASSERT_FALSE(name.ok()) << text;
    EXPECT_EQ(name.error().code, Code::kInvalidArgument);
  }
  EXPECT_FALSE(parse_entry_name(std::string(65, 'a')).ok());
}

}  // namespace
}  // namespace afterglow
