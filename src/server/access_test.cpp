#include "server/access.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

namespace afterglow {
namespace {

using json = nlohmann::json;

struct Said {
  unsigned status = 0;  // 0: let through
  std::string code;
  std::string body;
  std::map<std::string, std::string> headers;
};

class AccessTest : public ::testing::Test {
 protected:
  void rules(
      const std::vector<std::string>& keys,
      const std::vector<std::string>& origins = {},
      const std::string& host = "127.0.0.1"
  ) {
    AccessRules rules;
    rules.keys = *ApiKeys::make(keys);
    rules.origins = *AllowedOrigins::make(origins);
    rules.host = host;
    gate_ = make_gate(std::move(rules));
  }

  static HttpRequest request(std::string method, std::string path) {
    HttpRequest request;
    request.method = std::move(method);
    request.path = std::move(path);
    request.host = "localhost:8080";
    request.over_loopback = true;
    return request;
  }
  static HttpRequest chat() { return request("POST", "/v1/chat/completions"); }

  Said ask(const HttpRequest& request) {
    Admission admission = gate_(request);
    Said said;
    for (auto& [name, value] : admission.headers) said.headers[name] = value;
    if (admission.answer == nullptr) return said;
    Output output = admission.answer->take();
    said.status = output.head->status;
    for (auto& [name, value] : output.head->headers) {
      said.headers[name] = value;
    }
    said.body = output.body;
    if (!said.body.empty()) {
      const json error = json::parse(said.body)["error"];
      said.code = error["code"].get<std::string>();
    }
    return said;
  }

  HttpGate gate_;
};

TEST_F(AccessTest, WithKeysOneIsNeeded) {
  rules({"secret-1", "secret-2"});
  for (const char* path :
       {"/v1/chat/completions",
        "/v1/cache",
        "/metrics",
        "/nowhere",
        "/health/",
        "/css",
        "/v1/models"}) {
    HttpRequest bare = request("GET", path);
    const Said said = ask(bare);
    EXPECT_EQ(said.status, 401U) << path;
    EXPECT_EQ(said.code, "invalid_api_key");
    EXPECT_EQ(said.headers.at("WWW-Authenticate"), "Bearer");
    bare.authorization = "Bearer secret-2";
    EXPECT_EQ(ask(bare).status, 0U) << path;
  }
}

TEST_F(AccessTest, TheKeyIsShownInEitherHeader) {
  rules({"secret"});
  struct Case {
    const char* authorization;
    const char* x_api_key;
    bool good;
  };
  const Case table[] = {
      {"Bearer secret", "", true},
      {"bearer  secret", "", true},
      {"", "secret", true},
      {"Bearer wrong", "", false},
      {"Bearer", "", false},
      {"Bearer ", "", false},
      {"Basic secret", "", false},
      {"Bearer secret, Bearer x", "", false},
      {"", "Secret", false},
      // The first one counts, as for namespaces.
      {"Bearer wrong", "secret", false},
  };
  for (const Case& c : table) {
    HttpRequest asked = chat();
    asked.authorization = c.authorization;
    asked.x_api_key = c.x_api_key;
    const Said said = ask(asked);
    EXPECT_EQ(said.status, c.good ? 0U : 401U) << c.authorization;
    EXPECT_EQ(said.body.find("wrong"), std::string::npos);
  }
}

TEST_F(AccessTest, HealthAndThePagesFilesAreOpen) {
  rules({"secret"});
  for (const char* path :
       {"/health",
        "/",
        "/css/base.css",
        "/js/main.js",
        "/icon.svg",
        "/openapi.json"}) {
    EXPECT_EQ(ask(request("GET", path)).status, 0U) << path;
    EXPECT_EQ(ask(request("POST", path)).status, 401U) << path;
    EXPECT_EQ(ask(request("DELETE", path)).status, 401U) << path;
  }
}

TEST_F(AccessTest, PagesOfOtherOriginsMayNotAskForChanges) {
  rules({});
  struct Case {
    const char* method;
    const char* origin;
    unsigned status;
  };
  const Case table[] = {
      {"POST", "", 0},
      {"POST", "http://localhost:8080", 0},
      {"POST", "http://localhost:3000", 403},
      {"POST", "https://evil.example", 403},
      {"POST", "null", 403},
      {"DELETE", "https://evil.example", 403},
      {"PUT", "https://evil.example", 403},
      {"OPTIONS", "https://evil.example", 403},
      // The browser keeps the answer from the page.
      {"GET", "https://evil.example", 0},
  };
  for (const Case& c : table) {
    HttpRequest asked = request(c.method, "/v1/cache/flush");
    asked.origin = c.origin;
    const Said said = ask(asked);
    EXPECT_EQ(said.status, c.status) << c.method << " " << c.origin;
    if (c.status == 403) {
      EXPECT_EQ(said.code, "origin_not_allowed");
      EXPECT_NE(said.body.find("--allowed-origins"), std::string::npos);
    }
    EXPECT_FALSE(said.headers.contains("Access-Control-Allow-Origin"));
  }
}

TEST_F(AccessTest, AKeyIsProofEnoughForAnyPage) {
  rules({"secret"});
  HttpRequest asked = chat();
  asked.origin = "app://desktop";
  asked.host = "some.name";
  EXPECT_EQ(ask(asked).status, 401U);
  asked.authorization = "Bearer secret";
  EXPECT_EQ(ask(asked).status, 0U);
}

TEST_F(AccessTest, ALoopbackServerIsKnownByItsOwnNamesOnly) {
  rules({}, {"https://chat.example"}, "MyBox");
  struct Case {
    const char* host;
    unsigned status;
  };
  const Case table[] = {
      {"localhost", 0},
      {"LOCALHOST:8080", 0},
      {"127.0.0.1:8080", 0},
      {"[::1]:8080", 0},
      {"mybox:8080", 0},
      {"chat.example", 0},
      {"", 0},
      {"evil.example:8080", 403},
      {"localhost.evil.example", 403},
      {"user@localhost", 403},
      {"localhost:8080, evil.example", 403},
  };
  for (const Case& c : table) {
    for (const char* method : {"GET", "POST", "OPTIONS"}) {
      HttpRequest asked = request(method, "/v1/cache");
      asked.host = c.host;
      const Said said = ask(asked);
      const unsigned good = std::string(method) == "OPTIONS" ? 204 : 0;
      EXPECT_EQ(said.status, c.status ? c.status : good)
          << method << " " << c.host;
      EXPECT_EQ(said.code, c.status ? "host_not_allowed" : "");
      asked.over_loopback = false;
      EXPECT_EQ(ask(asked).status, good) << c.host;
    }
  }
}

TEST_F(AccessTest, AnswersSayWhichPagesMayReadThem) {
  HttpRequest asked = chat();
  rules({}, {"http://localhost:3000"});
  asked.origin = "http://localhost:3000";
  Said said = ask(asked);
  EXPECT_EQ(said.status, 0U);
  EXPECT_EQ(said.headers["Access-Control-Allow-Origin"], asked.origin);
  EXPECT_EQ(said.headers["Vary"], "Origin");
  EXPECT_NE(
      said.headers["Access-Control-Expose-Headers"].find("X-Request-Id"),
      std::string::npos
  );
  asked.origin = "http://localhost:3001";
  said = ask(asked);
  EXPECT_EQ(said.status, 403U);
  EXPECT_FALSE(said.headers.contains("Access-Control-Allow-Origin"));
  EXPECT_EQ(said.headers["Vary"], "Origin");

  rules({}, {"*"});
  said = ask(asked);
  EXPECT_EQ(said.status, 0U);
  EXPECT_EQ(said.headers["Access-Control-Allow-Origin"], "*");
  EXPECT_FALSE(said.headers.contains("Vary"));

  rules({"secret"}, {"http://localhost:3001"});
  said = ask(asked);
  EXPECT_EQ(said.status, 401U);
  EXPECT_EQ(said.headers["Access-Control-Allow-Origin"], asked.origin);

  rules({});
  EXPECT_TRUE(ask(chat()).headers.empty());
}

TEST_F(AccessTest, PreflightsAreAnsweredWithoutAKey) {
  rules({"secret"}, {"http://localhost:3000"});
  HttpRequest asked = request("OPTIONS", "/v1/chat/completions");
  asked.origin = "http://localhost:3000";
  Said said = ask(asked);
  EXPECT_EQ(said.status, 204U);
  EXPECT_TRUE(said.body.empty());
  EXPECT_EQ(said.headers["Access-Control-Allow-Origin"], asked.origin);
  EXPECT_EQ(
      said.headers["Access-Control-Allow-Methods"], "GET, POST, DELETE, OPTIONS"
  );
  EXPECT_NE(
      said.headers["Access-Control-Allow-Headers"].find("Authorization"),
      std::string::npos
  );
  EXPECT_EQ(said.headers["Access-Control-Max-Age"], "7200");
  asked.origin = "https://evil.example";
  EXPECT_EQ(ask(asked).status, 403U);
}

TEST_F(AccessTest, RulesCanBeReplacedWhileRequestsAreJudged) {
  const auto with = [](const std::vector<std::string>& keys) {
    return AccessRules{*ApiKeys::make(keys), {}, "127.0.0.1"};
  };
  ReplaceableGate gate(with({"old", "both"}));
  const auto lets_in = [&gate](const std::string& key) {
    HttpRequest shown = chat();
    shown.x_api_key = key;
    return gate.admit(shown).answer == nullptr;
  };
  EXPECT_TRUE(lets_in("old") && lets_in("both") && !lets_in("new"));
  std::atomic<bool> done{false};
  std::thread asking([&] {
    while (!done) EXPECT_TRUE(lets_in("both") && !lets_in("none"));
  });
  for (int i = 0; i < 100; ++i) {
    gate.replace(with({"both", std::to_string(i)}));
    EXPECT_TRUE(lets_in(std::to_string(i)));
  }
  done = true;
  asking.join();
  gate.replace(with({"new", "both"}));
  EXPECT_TRUE(!lets_in("old") && lets_in("both") && lets_in("new"));
}

}  // namespace
}  // namespace afterglow
