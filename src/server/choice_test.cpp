#include "server/choice.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "server/fake_engine.h"

namespace afterglow {
namespace {

const Tokenizer& tokenizer() {
  static const Tokenizer kTokenizer = testing::byte_tokenizer();
  return kTokenizer;
}

/// <think> ... </think> and <tool_call>{...}</tool_call>.
AnswerFormat thinking_format() {
  AnswerFormat format;
  format.reasoning = {"<think>", "</think>"};
  format.tool_calls = find_tool_call_format("json_tools");
  return format;
}

CompletionRequest tools_request() {
  ChatPrompt chat;
  chat.tools_json =
      R"([{"type":"function","function":{"name":"add","parameters":
      {"type":"object","properties":{"a":{"type":"integer"}}}}}])";
  CompletionRequest request;
  request.prompts = {chat};
  return request;
}

constexpr std::string_view kCall =
    R"(<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>)";

class Reader {
 public:
  explicit Reader(
      const CompletionRequest& request, AnswerPart begins = AnswerPart::kContent
  )
      : choice_(
            request,
            *answer_reading(request, thinking_format()),
            begins,
            tokenizer()
        ) {}

  Reader& feed(std::string_view text) {
    for (const char byte : text) {
      TokenOut out;
      out.token = static_cast<unsigned char>(byte);
      choice_.add(out);
      ++fed_;
    }
    return *this;
  }
  ChoiceDelta end(FinishReason reason) {
    Finished finished;
    finished.reason = reason;
    finished.timings.predicted_n = fed_;
    choice_.finish(finished);
    return choice_.take();
  }
  Choice& choice() { return choice_; }

 private:
  Choice choice_;
  std::size_t fed_ = 0;
};

TEST(Choice, ReasoningIsKeptOutOfContent) {
  Reader reader(tools_request());
  const auto all = reader.feed("<think>hm</think>yes").end(FinishReason::kStop);
  EXPECT_EQ(all.reasoning, "hm");
  EXPECT_EQ(all.content, "yes");
  EXPECT_TRUE(all.tool_calls.empty());
  EXPECT_EQ(reader.choice().finish_reason(), "stop");
}

TEST(Choice, APromptMayOpenTheReasoning) {
  Reader reader(tools_request(), AnswerPart::kReasoning);
  const auto all = reader.feed("hm</think>yes").end(FinishReason::kStop);
  EXPECT_EQ(all.reasoning, "hm");
  EXPECT_EQ(all.content, "yes");
}

TEST(Choice, CallsGetIdsAndEndTheAnswer) {
  Reader reader(tools_request());
  reader.feed("I add. ").feed(kCall).feed(kCall);
  const auto all = reader.end(FinishReason::kStop);
  EXPECT_EQ(all.content, "I add. ");
  ASSERT_EQ(all.tool_calls.size(), 2U);
  EXPECT_EQ(all.tool_calls[0].name, "add");
  EXPECT_EQ(all.tool_calls[0].arguments, R"({"a": 1})");
  EXPECT_TRUE(all.tool_calls[0].id.starts_with("call_"));
  EXPECT_NE(all.tool_calls[0].id, all.tool_calls[1].id);
  EXPECT_EQ(reader.choice().finish_reason(), "tool_calls");
}

TEST(Choice, CallsAreCountedOverDeltas) {
  Reader reader(tools_request());
  EXPECT_EQ(reader.feed(kCall).choice().take().calls_before, 0U);
  const auto second = reader.feed(kCall).choice().take();
  EXPECT_EQ(second.calls_before, 1U);
  EXPECT_EQ(second.tool_calls.size(), 1U);
}

TEST(Choice, WithoutParallelCallsTheFirstEndsIt) {
  auto request = tools_request();
  request.parallel_tool_calls = false;
  Reader reader(request);
  reader.feed(kCall);
  EXPECT_TRUE(reader.choice().stopped());
  const auto all = reader.feed("more").feed(kCall).end(FinishReason::kStop);
  EXPECT_EQ(all.tool_calls.size(), 1U);
  EXPECT_EQ(all.content, "");
  EXPECT_EQ(reader.choice().finish_reason(), "tool_calls");
  EXPECT_EQ(reader.choice().timings().predicted_n, kCall.size());
}

TEST(Choice, ACallCutByTheLengthIsContent) {
  Reader reader(tools_request());
  const auto all =
      reader.feed("<tool_call>{\"name\": \"ad").end(FinishReason::kLength);
  EXPECT_TRUE(all.tool_calls.empty());
  EXPECT_EQ(all.content, "<tool_call>{\"name\": \"ad");
  EXPECT_EQ(reader.choice().finish_reason(), "length");
}

TEST(Choice, WithToolChoiceNoneCallsAreContent) {
  auto request = tools_request();
  request.call_tools = false;
  Reader reader(request);
  const auto all = reader.feed(kCall).end(FinishReason::kStop);
  EXPECT_EQ(all.content, kCall);
  EXPECT_EQ(reader.choice().finish_reason(), "stop");
}

TEST(Choice, WithoutToolsCallsAreContentAndReasoningIsNot) {
  CompletionRequest request;
  request.prompts = {ChatPrompt{}};
  Reader reader(request);
  const auto all =
      reader.feed("<think>x</think>").feed(kCall).end(FinishReason::kStop);
  EXPECT_EQ(all.content, kCall);
  EXPECT_EQ(all.reasoning, "x");
}

TEST(Choice, TextCompletionsAreNotTakenApart) {
  CompletionRequest request;
  request.prompts = {TextPrompt("x")};
  Reader reader(request);
  const auto all =
      reader.feed("<think>x</think>").feed(kCall).end(FinishReason::kStop);
  EXPECT_EQ(all.content, "<think>x</think>" + std::string(kCall));
}

TEST(Choice, AStopStringEndsTheAnswerWithItsOwnReason) {
  auto request = tools_request();
  request.stops = {"END"};
  Reader reader(request);
  reader.feed(kCall).feed("so END");
  EXPECT_TRUE(reader.choice().stopped());
  const auto all = reader.end(FinishReason::kStop);
  EXPECT_EQ(all.content, "so ");
  EXPECT_EQ(all.tool_calls.size(), 1U);
  EXPECT_EQ(reader.choice().finish_reason(), "stop");
}

TEST(Choice, ToolsThatAreNoListAreAnError) {
  auto request = tools_request();
  ChatPrompt chat;
  chat.tools_json = "{}";
  request.prompts = {chat};
  EXPECT_FALSE(answer_reading(request, thinking_format()).ok());
}

}  // namespace
}  // namespace afterglow
