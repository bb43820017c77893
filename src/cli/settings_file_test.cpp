#include "cli/settings_file.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace afterglow {
namespace {

std::vector<Setting> good(const std::string& text) {
  auto settings = parse_settings(text);
  if (!settings.ok()) {
    ADD_FAILURE() << text << " -> " << settings.error().message;
    return {};
  }
  return *std::move(settings);
}

/// The value of `a = ` and this.
std::string value(const std::string& text) {
  const auto settings = good("a = " + text);
  if (settings.size() != 1 || settings[0].values.size() != 1) {
    ADD_FAILURE() << text;
    return "?";
  }
  return settings[0].values[0];
}

TEST(SettingsFile, StatementsCommentsAndEmptyLines) {
  const auto settings = good(
      "# a comment\n\n  port = 8080 # another\r\n"
      "\tprompt-cache-dir=\"/a # b\"\n\nlist = [ 1, # one\n 'two',\n]\n"
      "empty = []\nlast = true"
  );
  ASSERT_EQ(settings.size(), 5U);
  EXPECT_EQ(settings[0].key, "port");
  EXPECT_EQ(settings[0].values, std::vector<std::string>{"8080"});
  EXPECT_EQ(settings[0].line, 3U);
  EXPECT_FALSE(settings[0].list);
  EXPECT_EQ(settings[1].key, "prompt-cache-dir");
  EXPECT_EQ(settings[1].values, std::vector<std::string>{"/a # b"});
  EXPECT_TRUE(settings[2].list);
  EXPECT_EQ(settings[2].values, (std::vector<std::string>{"1", "two"}));
  EXPECT_TRUE(settings[3].list);
  EXPECT_TRUE(settings[3].values.empty());
  EXPECT_EQ(settings[4].key, "last");
  EXPECT_EQ(settings[4].line, 10U);
  EXPECT_TRUE(good("").empty());
  EXPECT_TRUE(good("\n# only this").empty());
}

TEST(SettingsFile, Values) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"true", "true"},
      {"false", "false"},
      {"0", "0"},
      {"+7", "7"},
      {"-7", "-7"},
      {"1_000_000", "1000000"},
      {"0.5", "0.5"},
      {"1e3", "1e3"},
      {"-2.5E-3", "-2.5e-3"},
      {"\"\"", ""},
      {"''", ""},
      {"'C:\\n'", "C:\\n"},
      {R"("a\tb\n\"\\\b\f\r")", "a\tb\n\"\\\b\f\r"},
      {R"("\u00e9\U0001F600\u20AC")", "\xc3\xa9\xf0\x9f\x98\x80\xe2\x82\xac"},
      {"\"\"\"\none\r\ntwo\n\"\"\"", "one\ntwo\n"},
      {"'''\\n\n'quoted' ''x'''", "\\n\n'quoted' ''x"},
      {"\"\"\"one \\  \n\n   two\"\"\"", "one two"},
      {"\"\"\"a\"\"\"\"\"", "a\"\""},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(value(text), expected) << text;
  }
}

TEST(SettingsFile, FaultsNameTheirLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\n[serve]\n", "2: there are no tables"},
      {"a", "1: 'a' has no '='"},
      {"a b = 1", "1: 'a' has no '='"},
      {"a.b = 1", "1: 'a' has no '='"},
      {"= 1", "1: a line must be"},
      {"a =", "1: a value must be"},
      {"a = yes", "1: a value must be"},
      {"a = 08", "1: a value must be"},
      {"a = 0x10", "1: a value must be"},
      {"a = 1__0", "1: a value must be"},
      {"a = 1_", "1: a value must be"},
      {"a = .5", "1: a value must be"},
      {"a = 1.", "1: a value must be"},
      {"a = 1e", "1: a value must be"},
      {"a = inf", "1: a value must be"},
      {"a = 4GiB", "1: a value must be"},
      {"a = 2026-11-30", "1: a value must be"},
      {"a = 1 2", "1: there is more behind"},
      {"a = 1 b = 2", "1: there is more behind"},
      {"a = 'b' 'c'", "1: there is more behind"},
      {"a = \"b", "1: a string is not closed"},
      {"a = \"b\nc\"", "1: a string is not closed"},
      {"\na = \"\"\"b\n\nc", "2: a string is not closed"},
      {"a = '''b''''''", "1: there is more behind"},
      {"a = \"\\x\"", "1: a string has a backslash"},
      {"a = \"\\u12\"", "1: \\u takes 4 hex digits"},
      {"a = \"\\ud800\"", "1: a string escapes what is no character"},
      {"a = \"\\U00110000\"", "1: a string escapes what is no character"},
      {"a = [1, 2", "1: values of a list are not parted"},
      {"a = [1 2]", "1: values of a list are not parted"},
      {"a = [1,\n", "2: a list is not closed"},
      {"a = [[1]]", "1: a value must be"},
      {"a = {}", "1: a value must be"},
      {"a = 1\nb = 2\na = 3", "3: 'a' is set in line 1 already"},
      {std::string("a = '\0'", 7), "1: there is a control character"},
      {"a = 1\rb = 2", "1: there is a control character"},
  };
  for (const auto& [text, message] : cases) {
    const auto settings = parse_settings(text);
    ASSERT_FALSE(settings.ok()) << text;
    EXPECT_EQ(settings.error().code, Code::kInvalidArgument);
    EXPECT_TRUE(settings.error().message.starts_with(message))
        << text << " -> " << settings.error().message;
  }
}

TEST(SettingsFile, WhatIsWrittenIsReadAgain) {
  for (const std::string text :
       {"",
        "8080",
        "-1",
        "0.25",
        "1e5",
        "true",
        "08",
        "1E5",
        "+1",
        "1_0",
        "inf",
        "plain",
        "with \"quotes\" and \\",
        "two\nlines\t#",
        "\x01\x1f\x7f",
        "\xc3\xa9 \xff",
        "'",
        "[1]"}) {
    EXPECT_EQ(value(setting_value(text)), text) << setting_value(text);
  }
  EXPECT_EQ(setting_value("8080"), "8080");
  EXPECT_EQ(setting_value("08"), "\"08\"");
  EXPECT_EQ(setting_value(""), "\"\"");
}

}  // namespace
}  // namespace afterglow
