#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "server/api.h"
#include "server/fake_engine.h"
#include "server/http_server.h"
#include "server/test_client.h"

namespace afterglow::testing {

/// The whole server over a fake engine that plays script_, or what script_of_
/// says where it is set.
class ApiTest : public ::testing::Test {
 protected:
  ApiTest()
      : engine_([this](const GenerationRequest& request) {
          return script_of_ ? script_of_(request) : script_;
        }),
        api_(slot_, {}) {
    HttpOptions options;
    options.port = 0;
    options.limits.lag_bytes = 64 << 10;
    auto started = HttpServer::start(options, [this](HttpRequest request) {
      return api_.handle(std::move(request));
    });
    EXPECT_TRUE(started.ok());
    server_ = *std::move(started);
  }
  void ready() { slot_.set_ready(engine_); }

  TestClient::Response post(
      const std::string& path, const nlohmann::ordered_json& body
  ) {
    TestClient client(server_->port());
    client.post(path, body.dump());
    return client.response();
  }
  TestClient::Response request(
      const std::string& method,
      const std::string& path,
      const std::string& headers = {},
      const std::string& body = {}
  ) {
    TestClient client(server_->port());
    client.request(method, path, headers, body);
    return client.response();
  }
  TestClient::Response get(const std::string& path) {
    TestClient client(server_->port());
    client.get(path);
    return client.response();
  }
  static nlohmann::ordered_json chat_body(
      const nlohmann::ordered_json& more = nlohmann::ordered_json::object()
  ) {
    using json = nlohmann::ordered_json;
    json body = {
        {"messages", json::array({{{"role", "user"}, {"content", "hi"}}})}};
    body.update(more);
    return body;
  }

  Script script_{.text = "hello"};
  FakeEngine::Scripter script_of_;
  EngineSlot slot_;
  FakeEngine engine_;
  Api api_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace afterglow::testing
