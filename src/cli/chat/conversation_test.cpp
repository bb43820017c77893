#include "cli/chat/conversation.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace afterglow {
namespace {

using Json = nlohmann::ordered_json;

Conversation example() {
  return {
      "a model",
      "Be brief.",
      {{"user", "größer \"日本\" 🎉\n\tline\x01"},
       {"assistant", ""},
       {"user", "and?"},
       {"assistant", "</s>"}}};
}

TEST(Conversations, ComeBackAsTheyWere) {
  for (Conversation one : {example(), Conversation{}}) {
    const auto back = parse_conversation(to_json(one));
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(*back, one);
    // An empty system prompt is another thing than none.
    one.system_prompt = "";
    EXPECT_EQ(*parse_conversation(to_json(one)), one);
  }
}

TEST(Conversations, TakeANameInAnyBytes) {
  Conversation one = example();
  one.model = "caf\xe9";
  one.messages[0].content = "\xff";
  const auto back = parse_conversation(to_json(one));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->model, "caf\xEF\xBF\xBD");
  EXPECT_EQ(back->messages[0].content, "\xEF\xBF\xBD");
}

TEST(Conversations, HaveAFormThatStays) {
  const char* text =
      R"({"version":1,"model":"m","system_prompt":null,"messages":[)"
      R"({"role":"user","content":"a"},{"role":"assistant","content":"b"}]})";
  EXPECT_EQ(
      to_json({"m", std::nullopt, {{"user", "a"}, {"assistant", "b"}}}), text
  );
}

TEST(Conversations, PassOverFieldsOfLaterOnes) {
  Json json = Json::parse(to_json(example()));
  json["colour"] = {1, 2};
  json["messages"][0]["time"] = 7;
  EXPECT_EQ(*parse_conversation(json.dump()), example());
}

TEST(Conversations, MakePrompts) {
  const auto messages = with_message(example(), "next");
  ASSERT_EQ(messages.size(), 6u);
  EXPECT_EQ(messages[0].role, "system");
  EXPECT_EQ(messages[0].content, "Be brief.");
  EXPECT_EQ(messages[4].content, "</s>");
  EXPECT_EQ(messages[5].role, "user");
  EXPECT_EQ(messages[5].content, "next");
  EXPECT_EQ(with_message({}, "next").size(), 1u);
}

struct Fault {
  const char* name;
  const char* where;  // a JSON pointer
  const char* value;  // JSON; empty: it is taken away
  const char* message;
};

class ConversationFaults : public testing::TestWithParam<Fault> {};

TEST_P(ConversationFaults, AreNamed) {
  Json json = Json::parse(to_json(example()));
  const Json::json_pointer where(GetParam().where);
  if (*GetParam().value == 0) {
    json.at(where.parent_pointer()).erase(where.back());
  } else {
    json[where] = Json::parse(GetParam().value);
  }
  const auto back = parse_conversation(json.dump());
  ASSERT_FALSE(back.ok());
  EXPECT_EQ(back.error().message, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Each,
    ConversationFaults,
    testing::Values(
        Fault{"no_version", "/version", "", "it has no version"},
        Fault{"text_version", "/version", "\"1\"", "it has no version"},
        Fault{
            "later",
            "/version",
            "2",
            "it is a conversation of version 2, which a later afterglow wrote"},
        Fault{
            "zero",
            "/version",
            "0",
            "it is a conversation of version 0, which no afterglow wrote"},
        Fault{
            "negative",
            "/version",
            "-1",
            "it is a conversation of version -1, which no afterglow wrote"},
        Fault{"no_model", "/model", "", "it names no model"},
        Fault{"model_null", "/model", "null", "it names no model"},
        Fault{
            "no_system",
            "/system_prompt",
            "",
            "its system prompt is neither text nor null"},
        Fault{
            "system_list",
            "/system_prompt",
            "[]",
            "its system prompt is neither text nor null"},
        Fault{"no_messages", "/messages", "", "it has no list of messages"},
        Fault{
            "messages_object", "/messages", "{}", "it has no list of messages"},
        Fault{"text", "/messages/1", "\"b\"", "message 2 is no object"},
        Fault{
            "no_content",
            "/messages/2/content",
            "",
            "message 3 has no role or no content"},
        Fault{
            "content_parts",
            "/messages/0/content",
            "[\"a\"]",
            "message 1 has no role or no content"},
        Fault{
            "order",
            "/messages/0/role",
            "\"assistant\"",
            "message 1 is not of the user"},
        Fault{
            "system_later",
            "/messages/3/role",
            "\"system\"",
            "message 4 is not of the assistant"},
        Fault{
            "odd",
            "/messages/4",
            R"({"role":"user","content":"x"})",
            "its last message has no answer"}
    ),
    [](const auto& info) { return info.param.name; }
);

TEST(Conversations, AreJsonObjectsInUtf8) {
  for (const char* text :
       {"", "[]", "null", "{", "{\"version\":1,\"\xff\":1}"}) {
    const auto back = parse_conversation(text);
    ASSERT_FALSE(back.ok()) << text;
    EXPECT_EQ(back.error().code, Code::kCorrupt);
    EXPECT_EQ(back.error().message, "it is no JSON object");
  }
  const std::string deep(1'000'000, '[');
  EXPECT_FALSE(parse_conversation(deep).ok());
}

}  // namespace
}  // namespace afterglow
