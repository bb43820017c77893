#include "server/json_body.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace afterglow {
namespace {

using json = nlohmann::ordered_json;

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

TEST(JsonBody, AgreesWithTheLibraryOnValidText) {
  for (const std::string text :
       {R"({"b":[1,-2,3.5,1e3,true,false,null],"a":{"x":"\u00e9\ud83d\ude00"}})",
        R"([])",
        R"({})",
        R"("text")",
        R"(18446744073709551615)",
        R"({"z":1,"y":{"z":1},"x":[{"z":1}]})"}) {
    const auto parsed = parse_json_body(text);
    ASSERT_TRUE(parsed.ok()) << text << parsed.error().message;
    EXPECT_EQ(parsed->dump(), json::parse(text).dump());
  }
}

TEST(JsonBody, KeepsTheOrderOfMembers) {
  const auto parsed = parse_json_body(R"({"z":1,"a":2,"m":3})");
  EXPECT_EQ(parsed->dump(), R"({"z":1,"a":2,"m":3})");
}

TEST(JsonBody, RefusesWhatIsNotJson) {
  struct Case {
    const char* text;
    const char* reason;
  };
  for (const Case& c : {
           Case{"", "empty"},
           Case{"{", "not valid JSON"},
           Case{"{\"a\":1,}", "not valid JSON"},
           Case{"{'a':1}", "not valid JSON"},
           Case{"{\"a\":1} x", "not valid JSON"},
           Case{"[1 2]", "not valid JSON"},
           Case{"[NaN]", "not valid JSON"},
           Case{"[1e999]", "not valid JSON"},
           Case{"[01]", "not valid JSON"},
           Case{"\"\xff\"", "not valid JSON"},
           Case{"\"\xc0\x80\"", "not valid JSON"},
           Case{"\"\xed\xa0\x80\"", "not valid JSON"},
           Case{"\"\\ud800\"", "not valid JSON"},
           Case{"\"a\nb\"", "not valid JSON"},
           Case{"{\"a\":1,\"a\":2}", "appears twice"},
           Case{"{\"x\":{\"a\":1,\"b\":2,\"a\":3}}", "appears twice"},
       }) {
    const auto parsed = parse_json_body(c.text);
    ASSERT_FALSE(parsed.ok()) << c.text;
    EXPECT_EQ(parsed.error().code, Code::kInvalidArgument);
    EXPECT_NE(parsed.error().message.find(c.reason), std::string::npos)
        << parsed.error().message;
  }
}

TEST(JsonBody, DoesNotRepeatTheTextInErrors) {
  const auto parsed = parse_json_body("{\"prompt\": secret}");
  EXPECT_EQ(parsed.error().message.find("secret"), std::string::npos);
}

TEST(JsonBody, OnlyOneThatIsOptionalMayBeLeftOut) {
  for (const char* text : {"", " \r\n\t", "null"}) {
    const auto optional = parse_json_object(text, {}, BodyIs::kOptional);
    ASSERT_TRUE(std::holds_alternative<json>(optional)) << text;
    EXPECT_EQ(std::get<json>(optional), json::object()) << text;
    const auto required = parse_json_object(text);
    ASSERT_TRUE(std::holds_alternative<ApiError>(required)) << text;
    EXPECT_EQ(std::get<ApiError>(required).code, "invalid_json") << text;
  }
  for (const char* text : {"[]", "0", "{", "nul"}) {
    const auto wrong = parse_json_object(text, {}, BodyIs::kOptional);
    ASSERT_TRUE(std::holds_alternative<ApiError>(wrong)) << text;
    EXPECT_EQ(std::get<ApiError>(wrong).code, "invalid_json") << text;
  }
}

TEST(JsonBody, AMemberNamedTwiceIsNamedWithItsPlace) {
  struct Case {
    const char* text;
    const char* param;
  };
  for (const Case& c : {
           Case{R"({"a":1,"b":{},"a":2})", "a"},
           Case{R"({"x":{"a":1,"b":2,"a":3}})", "x.a"},
           Case{R"({"m":[{},{"y":0,"r":1,"r":2}]})", "m[1].r"},
           Case{R"({"m":[[],[{"z":[{"r":1,"r":2}]}]]})", "m[1][0].z[0].r"},
       }) {
    const auto parsed = parse_json_object(c.text);
    ASSERT_TRUE(std::holds_alternative<ApiError>(parsed)) << c.text;
    EXPECT_EQ(std::get<ApiError>(parsed).param, c.param);
    EXPECT_EQ(std::get<ApiError>(parsed).code, "invalid_json");
  }
  const auto other = parse_json_object("{\"a\":1,}");
  EXPECT_EQ(std::get<ApiError>(other).param, "");
}

TEST(JsonBody, LimitsDepthExactly) {
  const JsonLimits limits{.depth = 8};
  EXPECT_TRUE(parse_json_body(nested(8), limits).ok());
  EXPECT_FALSE(parse_json_body(nested(9), limits).ok());
  EXPECT_FALSE(parse_json_body(nested(1'000'000), limits).ok());
}

TEST(JsonBody, LimitsValuesExactly) {
  const JsonLimits limits{.depth = 8, .values = 4};
  EXPECT_TRUE(parse_json_body("[1,2,3]", limits).ok());
  EXPECT_FALSE(parse_json_body("[1,2,3,4]", limits).ok());
}

TEST(JsonBody, ManyMembersTakeLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) {
    text += (i ? ",\"k" : "\"k") + std::to_string(i) + "\":0";
  }
  text += "}";
  const auto parsed = parse_json_body(text);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->size(), 200'000U);
}

}  // namespace
}  // namespace afterglow
