#include "server/answer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "server/fake_engine.h"

namespace afterglow {
namespace {

using json = nlohmann::ordered_json;

const Tokenizer& tokenizer() {
  static const Tokenizer kTokenizer = testing::byte_tokenizer();
  return kTokenizer;
}

CompletionRequest chat_request() {
  CompletionRequest request;
  request.prompts = {ChatPrompt{}};
  return request;
}

AnswerIdentity identity(const CompletionRequest& request) {
  return {.id = "id-1", .model = "m", .created = 5, .chat = request.chat()};
}

Answer make_answer(const CompletionRequest& request) {
  PreparedPrompt prompt;
  prompt.tokens.resize(10);
  return {request, identity(request), {}, {prompt}, tokenizer()};
}

TokenOut byte_token(char byte) {
  TokenOut out;
  out.token = static_cast<unsigned char>(byte);
  out.logprob = -0.25F;
  return out;
}

Finished finished(FinishReason reason, std::size_t predicted) {
  Finished event;
  event.reason = reason;
  event.timings.cache_n = 4;
  event.timings.cache_disk_n = 4;
  event.timings.prompt_n = 6;
  event.timings.prompt_ms = 3;
  event.timings.predicted_n = predicted;
  event.timings.predicted_ms = 2;
  return event;
}

void feed(Answer& answer, std::string_view text) {
  for (const char byte : text) answer.on(0, byte_token(byte));
}

/// The `data:` payloads of an event stream; comments are checked and left out.
std::vector<std::string> events(const std::string& stream) {
  std::vector<std::string> result;
  std::size_t at = 0;
  while (at < stream.size()) {
    const std::size_t end = stream.find("\n\n", at);
    if (end == std::string::npos) {
      ADD_FAILURE() << "an event without its end";
      break;
    }
    const std::string one = stream.substr(at, end - at);
    if (one.starts_with("data: ")) {
      result.push_back(one.substr(6));
    } else {
      EXPECT_TRUE(one.starts_with(": ")) << one;
    }
    EXPECT_EQ(one.find('\n'), std::string::npos) << one;
    at = end + 2;
  }
  return result;
}

std::string run_stream(Answer& answer) {
  const Output output = answer.take_output();
  EXPECT_TRUE(output.head.has_value());
  if (output.head) {
    EXPECT_EQ(output.head->status, 200U);
    EXPECT_EQ(output.head->content_type, "text/event-stream");
    EXPECT_TRUE(output.head->streaming);
  }
  EXPECT_TRUE(output.done);
  return output.body;
}

TEST(AnswerWhole, HasOpenAisShape) {
  auto request = chat_request();
  Answer answer = make_answer(request);
  answer.on(0, Progress{5, 10});
  feed(answer, "Hi \xC3\xA9");
  EXPECT_FALSE(answer.take_output().head.has_value());
  answer.on(0, finished(FinishReason::kStop, 6));
  const Output output = answer.take_output();
  EXPECT_TRUE(output.done);
  EXPECT_FALSE(output.head->streaming);
  const json body = json::parse(output.body);
  EXPECT_EQ(body["id"], "id-1");
  EXPECT_EQ(body["object"], "chat.completion");
  EXPECT_EQ(body["created"], 5);
  EXPECT_EQ(body["model"], "m");
  EXPECT_EQ(body["choices"].size(), 1U);
  const json& choice = body["choices"][0];
  EXPECT_EQ(choice["index"], 0);
  EXPECT_EQ(choice["message"]["role"], "assistant");
  EXPECT_EQ(choice["message"]["content"], "Hi \xC3\xA9");
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_TRUE(choice["logprobs"].is_null());
  EXPECT_EQ(body["usage"]["prompt_tokens"], 10);
  EXPECT_EQ(body["usage"]["completion_tokens"], 6);
  EXPECT_EQ(body["usage"]["total_tokens"], 16);
  EXPECT_EQ(body["usage"]["prompt_tokens_details"]["cached_tokens"], 4);
  const json& timings = body["timings"];
  EXPECT_EQ(timings["cache_n"], 4);
  EXPECT_EQ(timings["cache_ram_n"], 0);
  EXPECT_EQ(timings["cache_disk_n"], 4);
  EXPECT_EQ(timings["prompt_n"], 6);
  EXPECT_EQ(timings["prompt_ms"], 3.0);
  EXPECT_EQ(timings["prompt_per_second"], 2000.0);
  EXPECT_EQ(timings["predicted_n"], 6);
  EXPECT_EQ(timings["predicted_per_second"], 3000.0);
  EXPECT_TRUE(timings.contains("restore_ms"));
}

TEST(AnswerWhole, CompletionsHaveText) {
  CompletionRequest request;
  request.prompts = {TextPrompt("x")};
  Answer answer = make_answer(request);
  feed(answer, "abc");
  answer.on(0, finished(FinishReason::kLength, 3));
  const json body = json::parse(answer.take_output().body);
  EXPECT_EQ(body["object"], "text_completion");
  EXPECT_EQ(body["choices"][0]["text"], "abc");
  EXPECT_EQ(body["choices"][0]["finish_reason"], "length");
}

TEST(AnswerStream, PiecesJoinToTheTextAndEndProperly) {
  auto request = chat_request();
  request.stream = true;
  Answer answer = make_answer(request);
  answer.on(0, Progress{5, 10});
  feed(answer, "a\xC3\xA9z");
  answer.on(0, finished(FinishReason::kStop, 4));
  const std::string stream = run_stream(answer);
  EXPECT_TRUE(stream.starts_with(": keepalive 5/10\n\n"));
  const auto all = events(stream);
  ASSERT_GE(all.size(), 3U);
  EXPECT_EQ(all.back(), "[DONE]");
  std::string text;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    const json chunk = json::parse(all[i]);
    EXPECT_EQ(chunk["object"], "chat.completion.chunk");
    EXPECT_EQ(chunk["id"], "id-1");
    const json& choice = chunk["choices"][0];
    const bool last = i + 2 == all.size();
    EXPECT_EQ(choice["finish_reason"], last ? json("stop") : json(nullptr));
    EXPECT_EQ(choice["delta"].contains("role"), i == 0);
    text += choice["delta"].value("content", "");
    EXPECT_EQ(chunk.contains("timings"), last);
    EXPECT_FALSE(chunk.contains("usage"));
  }
  EXPECT_EQ(text, "a\xC3\xA9z");
}

TEST(AnswerStream, NeverSplitsACharacter) {
  auto request = chat_request();
  request.stream = true;
  Answer answer = make_answer(request);
  feed(answer, "\xF0\x9F\x98");
  EXPECT_EQ(answer.take_output().body, "");
  feed(answer, "\x80");
  EXPECT_NE(
      answer.take_output().body.find("\xF0\x9F\x98\x80"), std::string::npos
  );
}

TEST(AnswerStream, UsageComesLastWhenAskedFor) {
  auto request = chat_request();
  request.stream = true;
  request.include_usage = true;
  Answer answer = make_answer(request);
  feed(answer, "a");
  answer.on(0, finished(FinishReason::kStop, 2));
  const auto all = events(run_stream(answer));
  ASSERT_EQ(all.size(), 4U);
  const json last = json::parse(all[2]);
  EXPECT_TRUE(last["choices"].empty());
  EXPECT_EQ(last["usage"]["total_tokens"], 12);
  EXPECT_EQ(last["usage"]["prompt_tokens_details"]["cached_tokens"], 4);
  EXPECT_EQ(last["timings"]["cache_n"], 4);
  EXPECT_FALSE(json::parse(all[1]).contains("timings"));
}

TEST(AnswerStream, AnEmptyAnswerStillNamesItsRole) {
  auto request = chat_request();
  request.stream = true;
  Answer answer = make_answer(request);
  answer.on(0, finished(FinishReason::kStop, 0));
  const auto all = events(run_stream(answer));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(json::parse(all[0])["choices"][0]["delta"]["role"], "assistant");
}

TEST(AnswerStop, AStopStringOverTokensEndsTheText) {
  for (const bool stream : {false, true}) {
    auto request = chat_request();
    request.stream = stream;
    request.stops = {"END"};
    Answer answer = make_answer(request);
    feed(answer, "ab E EN");
    EXPECT_FALSE(answer.stopped(0));
    feed(answer, "D");
    EXPECT_TRUE(answer.stopped(0));
    feed(answer, "more");
    answer.on(0, finished(FinishReason::kCancelled, 12));
    const Output output = answer.take_output();
    EXPECT_TRUE(output.done);
    json last;
    std::string text;
    if (stream) {
      const auto all = events(output.body);
      for (std::size_t i = 0; i + 1 < all.size(); ++i) {
        last = json::parse(all[i]);
        text += last["choices"][0]["delta"].value("content", "");
      }
    } else {
      last = json::parse(output.body);
      text = last["choices"][0]["message"]["content"];
      EXPECT_EQ(last["usage"]["completion_tokens"], 8);
    }
    EXPECT_EQ(text, "ab E ");
    EXPECT_EQ(last["choices"][0]["finish_reason"], "stop");
    EXPECT_EQ(last["timings"]["predicted_n"], 8);
  }
}

TEST(AnswerStop, TheStartOfAStopStringIsTextAtTheEnd) {
  auto request = chat_request();
  request.stops = {"END"};
  Answer answer = make_answer(request);
  feed(answer, "ab EN");
  answer.on(0, finished(FinishReason::kLength, 5));
  const json body = json::parse(answer.take_output().body);
  EXPECT_EQ(body["choices"][0]["message"]["content"], "ab EN");
  EXPECT_EQ(body["choices"][0]["finish_reason"], "length");
}

TEST(AnswerFailure, BeforeAnythingIsSentIsAStatus) {
  auto request = chat_request();
  request.stream = true;
  Answer answer = make_answer(request);
  answer.on(0, Failed{{Code::kInternal, "[x.y] boom"}});
  const Output output = answer.take_output();
  EXPECT_EQ(output.head->status, 500U);
  EXPECT_FALSE(output.head->streaming);
  EXPECT_TRUE(output.done);
  EXPECT_EQ(json::parse(output.body)["error"]["message"], "boom");
}

TEST(AnswerFailure, InsideAStreamIsAnEvent) {
  auto request = chat_request();
  request.stream = true;
  Answer answer = make_answer(request);
  feed(answer, "a");
  answer.on(0, Failed{{Code::kInternal, "[x.y] boom"}});
  const Output output = answer.take_output();
  EXPECT_TRUE(output.done);
  const auto all = events(output.body);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(json::parse(all[1])["error"]["message"], "boom");
  EXPECT_EQ(all[2], "[DONE]");
}

TEST(AnswerFailure, ACancelFromElsewhereIsNoNormalEnd) {
  auto request = chat_request();
  Answer answer = make_answer(request);
  feed(answer, "a");
  answer.on(0, finished(FinishReason::kCancelled, 1));
  const Output output = answer.take_output();
  EXPECT_EQ(output.head->status, 503U);
  EXPECT_EQ(json::parse(output.body)["error"]["code"], "stopping");
}

TEST(AnswerLogprobs, ChatListsTokensWithBytes) {
  auto request = chat_request();
  request.logprobs = true;
  request.top_logprobs = 2;
  Answer answer = make_answer(request);
  TokenOut first = byte_token('\xC3');
  first.top_logprobs = {{0xC3, -0.25F}, {'b', -1.5F}};
  answer.on(0, first);
  TokenOut second = byte_token('\xA9');
  second.top_logprobs = {{0xA9, -0.25F}, {'c', -INFINITY}};
  answer.on(0, second);
  answer.on(0, finished(FinishReason::kStop, 2));
  const json body = json::parse(answer.take_output().body);
  const json& content = body["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 2U);
  EXPECT_EQ(content[0]["bytes"], json::array({0xC3}));
  EXPECT_EQ(content[0]["token"], "\xEF\xBF\xBD");
  EXPECT_EQ(content[0]["logprob"], -0.25);
  ASSERT_EQ(content[0]["top_logprobs"].size(), 2U);
  EXPECT_EQ(content[0]["top_logprobs"][1]["token"], "b");
  EXPECT_EQ(content[0]["top_logprobs"][1]["logprob"], -1.5);
  EXPECT_EQ(content[1]["top_logprobs"][1]["logprob"], -9999.0);
}

TEST(AnswerLogprobs, StreamCarriesEachTokenOnce) {
  auto request = chat_request();
  request.stream = true;
  request.logprobs = true;
  Answer answer = make_answer(request);
  feed(answer, "a\xC3\xA9");
  answer.on(0, finished(FinishReason::kStop, 3));
  std::size_t count = 0;
  for (const std::string& event : events(run_stream(answer))) {
    if (event == "[DONE]") continue;
    const json logprobs = json::parse(event)["choices"][0]["logprobs"];
    if (!logprobs.is_null()) count += logprobs["content"].size();
  }
  EXPECT_EQ(count, 3U);
}

TEST(AnswerLogprobs, CompletionsHaveParallelLists) {
  CompletionRequest request;
  request.prompts = {TextPrompt("x")};
  request.logprobs = true;
  request.top_logprobs = 1;
  Answer answer = make_answer(request);
  for (const char byte : std::string("h\xC3\xA9y")) {
    TokenOut token = byte_token(byte);
    token.top_logprobs = {{token.token, -0.25F}};
    answer.on(0, token);
  }
  answer.on(0, finished(FinishReason::kStop, 4));
  const json body = json::parse(answer.take_output().body);
  const json& logprobs = body["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["tokens"].size(), 4U);
  EXPECT_EQ(
      logprobs["tokens"], json::array({"h", "bytes:\\xc3", "bytes:\\xa9", "y"})
  );
  EXPECT_EQ(logprobs["token_logprobs"][0], -0.25);
  EXPECT_EQ(logprobs["text_offset"], json::array({0, 1, 2, 2}));
  EXPECT_EQ(logprobs["top_logprobs"][0]["h"], -0.25);
}

TEST(AnswerLogprobs, BytesOfACharacterAreNamedApart) {
  CompletionRequest request;
  request.prompts = {TextPrompt("x")};
  request.logprobs = true;
  request.top_logprobs = 4;
  Answer answer = make_answer(request);
  TokenOut token = byte_token('\xF0');
  token.top_logprobs = {
      {0xF0, -0.25F}, {0x9F, -0.5F}, {0xFF, -1.0F}, {'\\', -2.0F}};
  answer.on(0, token);
  answer.on(0, finished(FinishReason::kStop, 1));
  const json body = json::parse(answer.take_output().body);
  EXPECT_EQ(
      body["choices"][0]["logprobs"]["top_logprobs"][0],
      json(
          {{"bytes:\\xf0", -0.25},
           {"bytes:\\x9f", -0.5},
           {"bytes:\\xff", -1.0},
           {"\\", -2.0}}
      )
  );
}

}  // namespace
}  // namespace afterglow
