#include "server/entry_texts.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "server/api_fixture.h"

namespace afterglow {
namespace {

using json = nlohmann::ordered_json;
using testing::ApiTest;

constexpr Token kStart = 256;
constexpr Token kEnd = 257;

/// A branch before which `lead` lies; '<' and '>' stand for the special tokens
/// of a message.
Branch branch(std::size_t at, std::string_view lead, std::string_view rest) {
  Branch made;
  made.at = at;
  made.lead = lead.size();
  for (const std::string_view text : {lead, rest}) {
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      made.tokens.push_back(c == '<' ? kStart : c == '>' ? kEnd : byte);
    }
  }
  return made;
}

std::string text_of(const Branch& made) {
  static const Tokenizer tokenizer = testing::byte_tokenizer();
  ListedEntry entry;
  entry.branches = {made};
  const json texts = entry_texts_json(entry, tokenizer);
  EXPECT_EQ(texts.at(0)["from"], made.at);
  return texts.at(0)["text"];
}

TEST(EntryTexts, BeginWhereTheMessageDoesThatForks) {
  EXPECT_EQ(
      text_of(branch(40, "dium.>\n<user\nWhat is", " a quay?>\n<assis")),
      "user What is a quay? assis"
  );
  EXPECT_EQ(text_of(branch(40, "Be brief.", ">\n<user\nHi>")), "user Hi");
}

TEST(EntryTexts, BeginAtTheForkWhereNoMessageBeginsNear) {
  EXPECT_EQ(text_of(branch(40, "many words and ", "a quay")), "a quay");
  EXPECT_EQ(text_of(branch(9, "What is a", " quay?")), "What is a quay?");
  EXPECT_EQ(text_of(branch(0, "", "  one\n\n\ttwo ")), "one two");
}

TEST(EntryTexts, AreOfAtMostEightyWholeCharacters) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "é";
  EXPECT_EQ(text_of(branch(0, "", text)), text.substr(0, 160));
  EXPECT_EQ(text_of(branch(0, "", "")), "");
}

class EntryTextsTest : public ApiTest {
 protected:
  void fill(const std::string& prompt, const std::string& headers = {}) {
    const json body = {{"prompt", prompt}};
    ASSERT_EQ(
        request("POST", "/v1/completions", headers, body.dump()).status, 200
    );
  }
  json entry(const std::string& headers = {}) {
    const auto response = request("GET", "/v1/cache", headers);
    return json::parse(response.body)["entries"].at(0);
  }
};

constexpr const char* kKey = "Authorization: Bearer one\r\n";

TEST_F(EntryTextsTest, AreToldToThisMachineWhereNoKeyIsAskedFor) {
  ready();
  fill("a lighthouse");
  const json texts = entry()["texts"];
  ASSERT_EQ(texts.size(), 1U);
  EXPECT_EQ(texts[0]["from"], 0);
  EXPECT_EQ(texts[0]["text"], "a lighthouse");
}

TEST_F(EntryTextsTest, AreNotToldToPagesOfOtherOrigins) {
  ready();
  fill("a lighthouse");
  EXPECT_FALSE(entry("Origin: https://x.org\r\n").contains("texts"));
  // Its own page sends none with a GET, but a cautious client might.
  EXPECT_FALSE(entry("Origin: http://127.0.0.1\r\n").contains("texts"));
}

TEST_F(EntryTextsTest, AreNotToldWhereManyKeysOpenOneCache) {
  ready();
  fill("a lighthouse", kKey);
  EXPECT_FALSE(entry(kKey).contains("texts"));
}

TEST_F(EntryTextsTest, AreToldToTheKeyWhoseNamespaceItIs) {
  engine_.namespaces.emplace(std::string(32, 's'));
  ready();
  fill("a lighthouse", kKey);
  fill("a harbour");
  EXPECT_EQ(entry(kKey)["texts"][0]["text"], "a lighthouse");
  EXPECT_EQ(entry()["texts"][0]["text"], "a harbour");
}

TEST(TextRight, EndsAtThisMachineWithoutAKey) {
  HttpRequest request;
  EXPECT_FALSE(TextRight(request).covers(""));
  EXPECT_FALSE(TextRight(request).covers("shared by those without a key"));
  request.over_loopback = true;
  EXPECT_TRUE(TextRight(request).covers(""));
  request.x_api_key = "one";
  EXPECT_FALSE(TextRight(request).covers(""));
  request.over_loopback = false;
  EXPECT_TRUE(TextRight(request).covers("of that key"));
}

}  // namespace
}  // namespace afterglow
