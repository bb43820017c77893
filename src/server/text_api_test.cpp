#include "server/text_api.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "server/api_fixture.h"

namespace afterglow {
namespace {

using json = nlohmann::ordered_json;
using testing::ApiTest;

TEST_F(ApiTest, TextBecomesTokensAndTextAgain) {
  ready();
  const std::string text = "h\xC3\xA9<|im_end|>";
  const json ids = json::parse(post("/tokenize", {{"content", text}}).body);
  EXPECT_EQ(ids, json({{"tokens", {104, 0xC3, 0xA9, 257}}}));
  EXPECT_EQ(json::parse(post("/detokenize", ids).body)["content"], text);
  const json plain = json::parse(
      post("/tokenize", {{"content", text}, {"parse_special", false}}).body
  );
  EXPECT_EQ(plain["tokens"].size(), text.size());
}

TEST_F(ApiTest, PiecesThatAreNoTextAreBytes) {
  ready();
  const json list = json::parse(
      post("/tokenize", {{"content", "h\xC3\xA9"}, {"with_pieces", true}}).body
  );
  EXPECT_EQ(
      list["tokens"],
      json::parse(R"([{"id":104,"piece":"h"},{"id":195,"piece":[195]},
                      {"id":169,"piece":[169]}])")
  );
}

TEST_F(ApiTest, ATemplateIsApplied) {
  ready();
  const json body = json::parse(post("/apply-template", chat_body()).body);
  // The fake's template is the identity.
  EXPECT_EQ(body["prompt"], chat_body()["messages"].dump());
}

TEST_F(ApiTest, WhatIsWrongWithTextCallsIsNamed) {
  ready();
  struct Case {
    const char* path;
    const char* body;
    const char* param;
  };
  for (const Case& c : {
           Case{"/tokenize", "{}", "content"},
           Case{"/tokenize", R"({"content":7})", "content"},
           Case{"/tokenize", R"({"content":"a","x":1})", "x"},
           Case{
               "/tokenize",
               R"({"content":"a","add_special":1})",
               "add_special"},
           Case{"/detokenize", "{}", "tokens"},
           Case{"/detokenize", R"({"tokens":["a"]})", "tokens"},
           Case{"/detokenize", R"({"tokens":[258]})", "tokens"},
           Case{"/apply-template", "{}", "messages"},
           Case{"/apply-template", R"({"messages":[]})", "messages"},
       }) {
    const auto response = request("POST", c.path, {}, c.body);
    EXPECT_EQ(response.status, 400) << c.path << c.body;
    EXPECT_EQ(json::parse(response.body)["error"]["param"], c.param) << c.body;
  }
  EXPECT_EQ(request("POST", "/tokenize", {}, "[").status, 400);
}

}  // namespace
}  // namespace afterglow
