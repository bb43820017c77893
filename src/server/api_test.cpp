#include <gtest/gtest.h>

#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/api_fixture.h"

namespace afterglow {
namespace {

using json = nlohmann::ordered_json;
using testing::ApiTest;
using testing::TestClient;
using namespace std::chrono_literals;

constexpr char kChat[] = "/v1/chat/completions";

TEST_F(ApiTest, HealthTellsTheTruth) {
  EXPECT_EQ(get("/health").status, 503);
  EXPECT_EQ(json::parse(get("/health").body)["status"], "loading");
  ready();
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(json::parse(get("/health").body)["status"], "ok");
  slot_.set_failed({Code::kCorrupt, "[model.load] bad file"});
  EXPECT_EQ(get("/health").status, 503);
  const json body = json::parse(get("/health").body);
  EXPECT_EQ(body["status"], "failed");
  EXPECT_EQ(body["message"], "bad file");
}

TEST_F(ApiTest, HealthAsksTheEngine) {
  ready();
  engine_.failure =
      Error{Code::kUnavailable, "[engine.health] the thread has died"};
  const auto response = get("/health");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(
      json::parse(response.body),
      (json{{"status", "failed"}, {"message", "the thread has died"}})
  );
}

TEST_F(ApiTest, WhileStoppingRequestsAreToldSo) {
  ready();
  slot_.set_stopping();
  EXPECT_EQ(get("/health").status, 503);
  EXPECT_EQ(json::parse(get("/health").body), json({{"status", "stopping"}}));
  for (const auto& response : {post(kChat, chat_body()), get("/v1/models")}) {
    EXPECT_EQ(response.status, 503);
    EXPECT_NE(response.head.find("Retry-After: 1"), std::string::npos);
    EXPECT_EQ(json::parse(response.body)["error"]["code"], "stopping");
  }
}

TEST_F(ApiTest, WhileLoadingRequestsAreToldToWait) {
  for (const auto& response :
       {post(kChat, chat_body()),
        get("/v1/models"),
        get("/v1/cache"),
        post("/v1/cache/flush", {})}) {
    EXPECT_EQ(response.status, 503);
    EXPECT_NE(response.head.find("Retry-After: 1"), std::string::npos);
    EXPECT_EQ(json::parse(response.body)["error"]["code"], "model_loading");
  }
  // What is wrong in any case is said at once.
  EXPECT_EQ(post(kChat, json::object()).status, 400);
}

TEST_F(ApiTest, UnknownPathsAndMethods) {
  ready();
  struct Case {
    const char* method;
    const char* path;
    int status;
    const char* allow;
  };
  for (const Case& c : {
           Case{"GET", "/nothing", 404, ""},
           Case{"POST", "/v1/chat", 404, ""},
           Case{"GET", "/v1/models/", 404, ""},
           Case{"GET", kChat, 405, "POST"},
           Case{"DELETE", kChat, 405, "POST"},
           Case{"POST", "/v1/models", 405, "GET, HEAD"},
           Case{"PUT", "/v1/models/x", 405, "GET"},
           Case{"GET", "/v1/cache/flush", 405, "POST"},
       }) {
    TestClient client(server_->port());
    client.send(
        std::string(c.method) + " " + c.path + " HTTP/1.1\r\nHost: x\r\n\r\n"
    );
    const auto response = client.response();
    EXPECT_EQ(response.status, c.status) << c.path;
    EXPECT_TRUE(json::parse(response.body)["error"]["message"].is_string());
    if (*c.allow != 0) {
      EXPECT_NE(
          response.head.find(std::string("Allow: ") + c.allow),
          std::string::npos
      );
    }
  }
}

TEST_F(ApiTest, ModelsAreListed) {
  ready();
  const json list = json::parse(get("/v1/models").body);
  EXPECT_EQ(list["object"], "list");
  ASSERT_EQ(list["data"].size(), 1U);
  EXPECT_EQ(list["data"][0]["id"], "fake");
  EXPECT_EQ(list["data"][0]["meta"]["context_length"], 4096);
  EXPECT_EQ(json::parse(get("/v1/models/fake").body)["id"], "fake");
  const auto missing = get("/v1/models/a%2Fb");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(json::parse(missing.body)["error"]["code"], "model_not_found");
}

TEST_F(ApiTest, AnswersBothEndpointsAndTheAlias) {
  ready();
  script_.cached = 3;
  for (const char* path : {kChat, "/chat/completions"}) {
    const auto response = post(path, chat_body({{"model", "gpt-4o"}}));
    ASSERT_EQ(response.status, 200) << response.body;
    const json body = json::parse(response.body);
    EXPECT_EQ(body["choices"][0]["message"]["content"], "hello");
    EXPECT_EQ(body["choices"][0]["finish_reason"], "stop");
    EXPECT_EQ(body["model"], "fake");
    EXPECT_EQ(body["usage"]["prompt_tokens_details"]["cached_tokens"], 3);
    EXPECT_NE(
        response.head.find("X-Request-Id: " + body["id"].get<std::string>()),
        std::string::npos
    );
  }
  const auto response =
      post("/v1/completions", {{"prompt", "hi"}, {"max_tokens", 2}});
  const json body = json::parse(response.body);
  EXPECT_EQ(body["choices"][0]["text"], "he");
  EXPECT_EQ(body["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(body["usage"]["prompt_tokens"], 2);
}

TEST_F(ApiTest, WhatTheClientAskedForReachesTheEngine) {
  ready();
  post(
      "/v1/completions",
      {{"prompt", {1, 2, 3}},
       {"max_tokens", 4},
       {"temperature", 0.5},
       {"seed", 9},
       {"xtc_probability", 0.5},
       {"logprobs", 2},
       {"cache_prompt", false}}
  );
  const GenerationRequest request = engine_.last_request();
  EXPECT_EQ(request.prompt, (std::vector<Token>{1, 2, 3}));
  EXPECT_EQ(request.max_tokens, 4U);
  EXPECT_EQ(request.sampling.temperature, 0.5);
  EXPECT_EQ(request.sampling.seed, 9U);
  EXPECT_EQ(
      request.sampling.xtc_special_tokens, (std::vector<Token>{257, '\n'})
  );
  EXPECT_EQ(request.stop_tokens, (std::vector<Token>{257}));
  EXPECT_TRUE(request.logprobs);
  EXPECT_EQ(request.top_logprobs, 2U);
  EXPECT_FALSE(request.cache_read);
  EXPECT_FALSE(request.cache_store);
}

TEST_F(ApiTest, WhatCanBeGotCanBeAskedForItsHead) {
  ready();
  for (const char* path : {"/health", "/v1/models", "/metrics", "/v1/cache"}) {
    testing::TestClient client(server_->port());
    ASSERT_TRUE(client.request("HEAD", path, "Connection: close\r\n"));
    client.read_until("the end");
    const std::string& all = client.unread();
    EXPECT_TRUE(all.starts_with("HTTP/1.1 200 OK\r\n")) << path << all;
    EXPECT_NE(all.find("\r\nDate: "), std::string::npos) << all;
    EXPECT_EQ(all.find("\r\n\r\n"), all.size() - 4) << path << all;
  }
}

TEST_F(ApiTest, TheEnginesRefusalsHaveTheirStatus) {
  ready();
  const auto long_prompt =
      post("/v1/completions", {{"prompt", std::string(4096, 'x')}});
  EXPECT_EQ(long_prompt.status, 400);
  const json error = json::parse(long_prompt.body)["error"];
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_EQ(error["param"], "prompt");
  engine_.refusal = Error{Code::kOverloaded, "[engine.submit] queue full"};
  const auto full = post(kChat, chat_body());
  EXPECT_EQ(full.status, 429);
  EXPECT_NE(full.head.find("Retry-After: 1"), std::string::npos);
  const json overloaded = json::parse(full.body)["error"];
  EXPECT_EQ(overloaded["message"], "queue full");
  EXPECT_EQ(overloaded["code"], "overloaded");
}

TEST_F(ApiTest, WhatNeverFitsIntoTheMemoryIsNotTriedAgain) {
  ready();
  engine_.refusal = Error{Code::kExhausted, "[engine.submit] too much"};
  struct Case {
    const char* path;
    json body;
    const char* param;
  };
  const std::string text(40, 'x');
  for (const Case& c : {
           Case{kChat, chat_body({{"n", 3}, {"max_tokens", 64}}), "max_tokens"},
           Case{
               "/v1/completions",
               {{"prompt", text}, {"max_tokens", 64}},
               "max_tokens"},
           Case{
               "/v1/completions",
               {{"prompt", text}, {"max_tokens", 8}},
               "prompt"},
       }) {
    const auto response = post(c.path, c.body);
    EXPECT_EQ(response.status, 400) << c.body;
    EXPECT_EQ(response.head.find("Retry-After"), std::string::npos);
    const json error = json::parse(response.body)["error"];
    EXPECT_EQ(error["type"], "invalid_request_error");
    EXPECT_EQ(error["code"], "memory_limit_exceeded");
    EXPECT_EQ(error["param"], c.param) << c.body;
    EXPECT_EQ(error["message"], "too much");
  }
}

TEST_F(ApiTest, MemoryThatIsShortNowIsAskedForAgain) {
  ready();
  script_.fail = Error{Code::kExhausted, "[engine.memory] none left"};
  const auto response = post(kChat, chat_body());
  EXPECT_EQ(response.status, 503);
  EXPECT_NE(response.head.find("Retry-After: 1"), std::string::npos);
  const json error = json::parse(response.body)["error"];
  EXPECT_EQ(error["code"], "out_of_memory");
  EXPECT_EQ(error["message"], "none left");
}

TEST_F(ApiTest, TheEnginesRefusalsNameTheMember) {
  ready();
  struct Case {
    json more;
    const char* param;
  };
  const json far = {{"300", 1}};
  const json huge = {{"5", 1e300}};
  for (const Case& c : {
           Case{{{"prompt", ""}}, "prompt"},
           Case{{{"prompt", json::array({1, 258})}}, "prompt"},
           Case{{{"prompt", json::parse("[[1], [258]]")}}, "prompt"},
           Case{{{"prompt", "a"}, {"top_k", 258}}, "top_k"},
           Case{{{"prompt", "a"}, {"logit_bias", far}}, "logit_bias"},
           Case{{{"prompt", "a"}, {"logit_bias", huge}}, "logit_bias"},
       }) {
    for (const bool stream : {false, true}) {
      json body = c.more;
      body["stream"] = stream;
      const auto response = post("/v1/completions", body);
      EXPECT_EQ(response.status, 400) << body;
      const json error = json::parse(response.body)["error"];
      EXPECT_EQ(error["param"], c.param) << body;
      EXPECT_EQ(error["type"], "invalid_request_error") << body;
    }
  }
  const auto chat = post(kChat, chat_body({{"top_k", 258}}));
  EXPECT_EQ(json::parse(chat.body)["error"]["param"], "top_k");
}

TEST_F(ApiTest, AStreamKeepsAliveDuringPrefill) {
  ready();
  script_.progress = 2;
  const auto response = post(kChat, chat_body({{"stream", true}}));
  EXPECT_EQ(response.status, 200);
  EXPECT_NE(
      response.head.find("Content-Type: text/event-stream"), std::string::npos
  );
  EXPECT_TRUE(response.body.starts_with(": keepalive "));
  EXPECT_TRUE(response.body.ends_with("data: [DONE]\n\n"));
}

TEST_F(ApiTest, AFailureWhileGeneratingIsReported) {
  ready();
  script_.fail = Error{Code::kInternal, "[engine.step] boom"};
  EXPECT_EQ(post(kChat, chat_body()).status, 500);
  const auto stream = post(kChat, chat_body({{"stream", true}}));
  EXPECT_EQ(stream.status, 200);
  EXPECT_NE(stream.body.find("\"message\":\"boom\""), std::string::npos);
  script_.fail.reset();
  EXPECT_EQ(post(kChat, chat_body()).status, 200);
}

TEST_F(ApiTest, WhatThrowsIsReportedAndEndsNoMore) {
  ready();
  int asked = 0;
  script_of_ = [&asked](const GenerationRequest&) -> testing::Script {
    if (++asked == 2) throw std::runtime_error("no luck");
    if (asked == 3) throw std::bad_alloc();
    return {.text = "x", .hold = asked == 1};
  };
  // The first choice runs already, and is cancelled.
  const auto broken = post(kChat, chat_body({{"n", 2}}));
  EXPECT_EQ(broken.status, 500);
  EXPECT_NE(broken.body.find("no luck"), std::string::npos);
  EXPECT_TRUE(engine_.wait_idle());
  EXPECT_EQ(engine_.cancels(), 1U);
  EXPECT_EQ(post(kChat, chat_body()).status, 503);
  EXPECT_EQ(post(kChat, chat_body()).status, 200);
}

TEST_F(ApiTest, AStopStringCancelsTheRest) {
  ready();
  script_ = {.text = "abc-", .endless = true};
  const auto response =
      post(kChat, chat_body({{"stop", "c-a"}, {"max_tokens", 1'000'000'000}}));
  const json body = json::parse(response.body);
  EXPECT_EQ(body["choices"][0]["message"]["content"], "ab");
  EXPECT_EQ(body["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(body["usage"]["completion_tokens"], 5);
  EXPECT_TRUE(engine_.wait_idle());
}

TEST_F(ApiTest, AClientThatLeavesCancelsItsRequest) {
  ready();
  script_ = {.hold = true};
  for (const bool stream : {false, true}) {
    TestClient client(server_->port());
    client.post(kChat, chat_body({{"stream", stream}}).dump());
    ASSERT_TRUE(engine_.wait_running(1));
    client.close();
    EXPECT_TRUE(engine_.wait_idle()) << stream;
  }
  EXPECT_EQ(engine_.cancels(), 2U);
}

TEST_F(ApiTest, AHalfClosedClientGetsItsAnswer) {
  ready();
  TestClient client(server_->port());
  client.post(kChat, chat_body().dump());
  client.shutdown_write();
  EXPECT_EQ(
      json::parse(client.response().body)["choices"][0]["message"]["content"],
      "hello"
  );
}

TEST_F(ApiTest, ASlowReaderIsCutWhileOthersAreServed) {
  ready();
  script_ = {.text = "0123456789", .endless = true};
  TestClient slow(server_->port(), 4096);
  slow.post(
      kChat, chat_body({{"stream", true}, {"max_tokens", 1'000'000'000}}).dump()
  );
  // The reader takes nothing: its answer ends without its doing.
  EXPECT_TRUE(engine_.wait_running(1));
  EXPECT_TRUE(engine_.wait_idle());
  script_ = {.text = "hello"};
  EXPECT_EQ(post(kChat, chat_body()).status, 200);
}

TEST_F(ApiTest, ClientsAtOnceGetTheirOwnAnswers) {
  ready();
  constexpr int kClients = 16;
  std::vector<std::thread> threads;
  std::vector<std::string> texts(kClients);
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([&, i] {
      const auto response = post(
          "/v1/completions",
          {{"prompt", "x"}, {"max_tokens", i % 5 + 1}, {"stream", i % 2 == 0}}
      );
      texts[i] = response.body;
    });
  }
  for (auto& thread : threads) thread.join();
  for (int i = 0; i < kClients; ++i) {
    std::string text;
    if (i % 2 == 1) {
      text = json::parse(texts[i])["choices"][0]["text"];
    } else {
      std::size_t at = 0;
      while ((at = texts[i].find("data: {", at)) != std::string::npos) {
        const std::size_t end = texts[i].find("\n\n", at);
        const json chunk = json::parse(texts[i].substr(at + 6, end - at - 6));
        text += chunk["choices"][0]["text"].get<std::string>();
        at = end;
      }
    }
    EXPECT_EQ(text, std::string("hello").substr(0, i % 5 + 1));
  }
}

TEST_F(ApiTest, CacheAndFlushAreReported) {
  ready();
  const json cache = json::parse(get("/v1/cache").body);
  EXPECT_TRUE(cache["disk"].is_null());
  EXPECT_EQ(cache["entries"].size(), 0U);
  EXPECT_TRUE(cache["ram"]["budget_bytes"].is_null());
  const auto flushed = post("/v1/cache/flush", {});
  EXPECT_EQ(flushed.status, 200);
  EXPECT_EQ(json::parse(flushed.body)["durable_blocks"], 7);
  EXPECT_EQ(json::parse(flushed.body)["complete"], true);
}

TEST_F(ApiTest, CutTellsClientsAndFreesTheEngine) {
  ready();
  script_ = {.hold = true};
  TestClient whole(server_->port());
  whole.post(kChat, chat_body().dump());
  ASSERT_TRUE(engine_.wait_running(1));
  server_->drain();
  server_->cut(stopping_error());
  const auto response = whole.response();
  EXPECT_EQ(response.status, 503);
  EXPECT_NE(response.head.find("Connection: close"), std::string::npos);
  EXPECT_EQ(json::parse(response.body)["error"]["code"], "stopping");
  EXPECT_TRUE(engine_.wait_idle());
}

}  // namespace
}  // namespace afterglow
