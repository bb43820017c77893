// Several answers to a request, and what they are made of.

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "server/api_fixture.h"

namespace afterglow {
namespace {

using json = nlohmann::ordered_json;
using testing::ApiTest;
using testing::Script;

constexpr char kChat[] = "/v1/chat/completions";

std::vector<json> events(const std::string& stream) {
  std::vector<json> result;
  for (std::size_t at = 0; at < stream.size();) {
    const std::size_t end = stream.find("\n\n", at);
    const std::string one = stream.substr(at, end - at);
    if (one.starts_with("data: {"))
      result.push_back(json::parse(one.substr(6)));
    at = end + 2;
  }
  return result;
}

class ChoicesApiTest : public ApiTest {
 protected:
  /// Each seed its own text; notes what came.
  void answer_by_seed() {
    script_of_ = [this](const GenerationRequest& request) {
      const std::lock_guard lock(mutex_);
      groups_.insert(request.share_group.get());
      clients_.insert(request.client);
      Script script{.text = "s" + std::to_string(*request.sampling.seed)};
      script.cached = groups_.size() == ++requests_ ? 0 : 1;
      return script;
    };
    ready();
  }

  std::mutex mutex_;
  std::size_t requests_ = 0;
  std::set<const ShareGroup*> groups_;
  std::set<std::string> clients_;
};

TEST_F(ChoicesApiTest, EachChoiceHasItsSeedAndAllShareAGroup) {
  answer_by_seed();
  const auto response = post(kChat, chat_body({{"n", 3}, {"seed", 7}}));
  ASSERT_EQ(response.status, 200) << response.body;
  const json body = json::parse(response.body);
  ASSERT_EQ(body["choices"].size(), 3U);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(body["choices"][i]["index"], i);
    EXPECT_EQ(
        body["choices"][i]["message"]["content"], "s" + std::to_string(7 + i)
    );
    EXPECT_EQ(body["choices"][i]["finish_reason"], "stop");
  }
  EXPECT_EQ(groups_.size(), 1U);
  EXPECT_EQ(*clients_.begin(), "127.0.0.1");
  // A prompt is counted once, all that was generated is.
  const json one = json::parse(post(kChat, chat_body({{"seed", 7}})).body);
  EXPECT_EQ(body["usage"]["prompt_tokens"], one["usage"]["prompt_tokens"]);
  EXPECT_EQ(body["usage"]["completion_tokens"], 6);
  EXPECT_EQ(body["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
  EXPECT_EQ(body["timings"]["predicted_n"], 6);
  EXPECT_EQ(body["timings"]["prompt_n"], one["usage"]["prompt_tokens"]);
}

TEST_F(ChoicesApiTest, AKeyThatNobodyCheckedIsNoName) {
  answer_by_seed();
  const auto response = request(
      "POST",
      kChat,
      "Authorization: Bearer me\r\n",
      chat_body({{"seed", 1}}).dump()
  );
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(clients_, std::set<std::string>{"127.0.0.1"});
}

TEST_F(ChoicesApiTest, AStreamTellsChoicesApart) {
  answer_by_seed();
  const auto response = post(
      kChat,
      chat_body(
          {{"n", 2},
           {"seed", 1},
           {"stream", true},
           {"stream_options", {{"include_usage", true}}}}
      )
  );
  std::map<int, std::string> texts, ends;
  std::map<int, int> roles;
  json usage;
  for (const json& event : events(response.body)) {
    if (event.contains("usage")) usage = event["usage"];
    for (const json& choice : event["choices"]) {
      const int index = choice["index"];
      const json& delta = choice["delta"];
      roles[index] += delta.contains("role");
      if (delta.contains("content")) {
        texts[index] += delta["content"].get<std::string>();
      }
      if (choice["finish_reason"].is_string()) {
        ends[index] += choice["finish_reason"].get<std::string>();
      }
    }
  }
  EXPECT_EQ(texts, (std::map<int, std::string>{{0, "s1"}, {1, "s2"}}));
  EXPECT_EQ(ends, (std::map<int, std::string>{{0, "stop"}, {1, "stop"}}));
  EXPECT_EQ(roles, (std::map<int, int>{{0, 1}, {1, 1}}));
  EXPECT_EQ(usage["completion_tokens"], 4);
}

TEST_F(ChoicesApiTest, SeveralPromptsAreAnsweredInTheirOrder) {
  script_of_ = [](const GenerationRequest& request) {
    std::string text;
    for (const Token token : request.prompt) text += static_cast<char>(token);
    return Script{.text = "<" + text + ">"};
  };
  ready();
  const auto response =
      post("/v1/completions", {{"prompt", {"ab", {99, 100}, "e"}}, {"n", 2}});
  ASSERT_EQ(response.status, 200) << response.body;
  const json body = json::parse(response.body);
  std::vector<std::string> texts;
  for (const json& choice : body["choices"]) texts.push_back(choice["text"]);
  EXPECT_EQ(
      texts,
      (std::vector<std::string>{"<ab>", "<ab>", "<cd>", "<cd>", "<e>", "<e>"})
  );
  EXPECT_EQ(body["usage"]["prompt_tokens"], 5);
  EXPECT_EQ(body["usage"]["completion_tokens"], 22);
}

TEST_F(ChoicesApiTest, OneThatFailsEndsAllOthers) {
  script_of_ = [](const GenerationRequest& request) {
    Script script{.text = "x", .endless = true};
    if (*request.sampling.seed == 4) {
      script.endless = false;
      script.fail = Error{Code::kInternal, "[step] broken"};
    }
    return script;
  };
  ready();
  const auto response =
      post(kChat, chat_body({{"n", 3}, {"seed", 3}, {"max_tokens", 1000000}}));
  EXPECT_EQ(response.status, 500);
  EXPECT_NE(response.head.find("X-Request-Id: chatcmpl-"), std::string::npos);
  EXPECT_TRUE(engine_.wait_idle());
}

TEST_F(ChoicesApiTest, AStopStringEndsItsChoiceOnly) {
  script_of_ = [](const GenerationRequest& request) {
    return *request.sampling.seed == 0
               ? Script{.text = "aSTOP", .endless = true}
               : Script{.text = "bcd"};
  };
  ready();
  const auto response = post(
      kChat,
      chat_body(
          {{"n", 2}, {"seed", 0}, {"stop", "STOP"}, {"max_tokens", 1000000}}
      )
  );
  const json body = json::parse(response.body);
  EXPECT_EQ(body["choices"][0]["message"]["content"], "a");
  EXPECT_EQ(body["choices"][1]["message"]["content"], "bcd");
  EXPECT_TRUE(engine_.wait_idle());
}

TEST_F(ChoicesApiTest, AFullQueueSaysWhenToTryAgain) {
  ready();
  engine_.refusal = Error{Code::kOverloaded, "full"};
  engine_.wait_before_retry = std::chrono::seconds(9);
  const auto response = post(kChat, chat_body({{"n", 2}}));
  EXPECT_EQ(response.status, 429);
  EXPECT_NE(response.head.find("Retry-After: 9"), std::string::npos);
}

TEST_F(ChoicesApiTest, LogprobsThatWouldFillTheMemoryAreRefused) {
  ready();
  json body = chat_body(
      {{"n", 8}, {"top_logprobs", 20}, {"max_tokens", 3000}, {"seed", 0}}
  );
  const auto refused = post(kChat, body);
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(json::parse(refused.body)["error"]["param"], "logprobs");
  body["stream"] = true;  // nothing waits
  EXPECT_EQ(post(kChat, body).status, 200);
}

TEST_F(ChoicesApiTest, ARefusalInTheMiddleEndsThoseThatBegan) {
  script_.endless = true;
  ready();
  engine_.refuse_after = 2;
  const auto response =
      post(kChat, chat_body({{"n", 4}, {"max_tokens", 1000000}}));
  EXPECT_EQ(response.status, 429);
  EXPECT_TRUE(engine_.wait_idle());
}

TEST_F(ChoicesApiTest, AClientThatLeavesEndsAllItsChoices) {
  script_.hold = true;  // only a cancel ends them
  ready();
  {
    testing::TestClient client(server_->port());
    client.post(kChat, chat_body({{"n", 3}, {"max_tokens", 1000000}}).dump());
    EXPECT_TRUE(engine_.wait_running(3));
  }
  EXPECT_TRUE(engine_.wait_idle());
  EXPECT_EQ(engine_.cancels(), 3U);
}

TEST_F(ChoicesApiTest, ToolCallsAreStreamedAsDeltas) {
  engine_.format.tool_calls = find_tool_call_format("json_tools");
  engine_.format.reasoning = {"<think>", "</think>"};
  script_.text =
      "<think>add</think>ok <tool_call>{\"name\": \"f\", \"arguments\": "
      "{\"x\": 1}}</tool_call>";
  ready();
  const json tools = json::parse(
      R"([{"type":"function","function":{"name":"f","parameters":{}}}])"
  );
  const json whole =
      json::parse(post(kChat, chat_body({{"tools", tools}})).body);
  const json& message = whole["choices"][0]["message"];
  EXPECT_EQ(message["reasoning"], "add");
  EXPECT_EQ(message["content"], "ok ");
  ASSERT_EQ(message["tool_calls"].size(), 1U);
  EXPECT_EQ(message["tool_calls"][0]["type"], "function");
  EXPECT_EQ(message["tool_calls"][0]["function"]["name"], "f");
  EXPECT_EQ(message["tool_calls"][0]["function"]["arguments"], R"({"x": 1})");
  EXPECT_FALSE(message["tool_calls"][0].contains("index"));
  EXPECT_EQ(whole["choices"][0]["finish_reason"], "tool_calls");

  const auto stream =
      post(kChat, chat_body({{"tools", tools}, {"stream", true}}));
  std::string reasoning, content, finish;
  json calls = json::array();
  for (const json& event : events(stream.body)) {
    const json& choice = event["choices"][0];
    const json& delta = choice["delta"];
    reasoning += delta.value("reasoning", "");
    content += delta.value("content", "");
    for (const json& call : delta.value("tool_calls", json::array())) {
      calls.push_back(call);
    }
    if (choice["finish_reason"].is_string()) finish = choice["finish_reason"];
  }
  EXPECT_EQ(reasoning, "add");
  EXPECT_EQ(content, "ok ");
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0]["index"], 0);
  EXPECT_EQ(calls[0]["function"]["name"], "f");
  EXPECT_EQ(finish, "tool_calls");
}

}  // namespace
}  // namespace afterglow
