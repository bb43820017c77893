#include "server/http_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <utility>

#include "server/http_server_fixture.h"

namespace afterglow {
namespace {

using testing::HttpServerTest;
using testing::stream_piece;
using testing::TestClient;
using testing::whole;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

TEST_F(HttpServerTest, AGateAnswersBeforeTheBodyIsRead) {
  HttpOptions options;
  options.port = 0;
  std::atomic<int> handled{0};
  auto started = HttpServer::start(
      options,
      [&](HttpRequest request) {
        ++handled;
        return handle(std::move(request));
      },
      [](const HttpRequest& request) {
        Admission admission;
        admission.headers = {{"X-Gate", request.origin}};
        EXPECT_TRUE(request.over_loopback);
        if (request.path == "/closed") {
          ResponseHead head;
          head.status = 403;
          admission.answer = respond(std::move(head), "no");
        }
        return admission;
      }
  );
  ASSERT_TRUE(started.ok());
  server_ = *std::move(started);
  {
    // Without a body the connection goes on.
    TestClient client(port());
    client.send("GET /closed HTTP/1.1\r\nHost: x\r\nOrigin: o\r\n\r\n");
    auto response = client.response();
    EXPECT_EQ(response.status, 403);
    EXPECT_NE(response.head.find("X-Gate: o\r\n"), std::string::npos);
    client.get("/open");
    response = client.response();
    EXPECT_EQ(response.status, 200);
    EXPECT_NE(response.head.find("X-Gate: \r\n"), std::string::npos);
  }
  {
    // A body is not waited for.
    TestClient client(port());
    client.send(
        "POST /closed HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\na"
    );
    EXPECT_EQ(client.response().status, 403);
    EXPECT_EQ(client.interim, 0);
    client.send(std::string(9998, 'b') + "GET /open HTTP/1.1\r\n\r\n");
    client.shutdown_write();
    EXPECT_TRUE(client.at_end());
  }
  {
    // Errors of the transport have the gate's headers, too.
    TestClient client(port());
    client.send(
        "POST / HTTP/1.1\r\nHost: x\r\nOrigin: o\r\n"
        "Content-Length: 99999999999\r\n\r\n"
    );
    const auto response = client.response();
    EXPECT_EQ(response.status, 413);
    EXPECT_NE(response.head.find("X-Gate: o\r\n"), std::string::npos);
  }
  EXPECT_EQ(handled, 1);
}

TEST_F(HttpServerTest, WhatThrowsEndsItsRequestOnly) {
  serve();
  TestClient client(port());
  ASSERT_TRUE(client.get("/throw"));
  EXPECT_EQ(client.response().status, 500);
  ASSERT_TRUE(client.get("/full"));
  EXPECT_EQ(client.response().status, 503);
  for (const char* path : {"/throw/start", "/throw/take"}) {
    TestClient cut(port());
    ASSERT_TRUE(cut.get(path));
    EXPECT_EQ(cut.response().status, 0) << path;
    EXPECT_TRUE(cut.at_end());
  }
  ASSERT_TRUE(client.get("/"));
  EXPECT_EQ(client.response().status, 200);
  client.close();
  // Nothing that failed holds its connection.
  EXPECT_TRUE(server_->wait_drained(steady_clock::now() + 10s));
}

TEST_F(HttpServerTest, AnIpv4ClientOfASocketForBothIsItself) {
  serve({}, "::");
  EXPECT_FALSE(server_->on_loopback());
  TestClient client(port());
  ASSERT_TRUE(client.get("/who"));
  const auto response = client.response();
  EXPECT_TRUE(response.body.starts_with("127.0.0.1:")) << response.body;
  EXPECT_TRUE(response.body.ends_with(" loopback")) << response.body;
}

TEST_F(HttpServerTest, DrainLetsAnswersEndAndClosesTheRest) {
  serve();
  TestClient idle(port());
  ASSERT_TRUE(idle.get("/"));
  EXPECT_EQ(idle.response().status, 200);
  TestClient busy(port());
  ASSERT_TRUE(busy.get("/stage"));
  ASSERT_TRUE(stage_->wait_alive(1));
  server_->drain();
  EXPECT_TRUE(idle.at_end());
  EXPECT_FALSE(server_->wait_drained(steady_clock::now() + 20ms));
  ASSERT_TRUE(stage_->emit(0, whole("done")));
  const auto response = busy.response();
  EXPECT_EQ(response.body, "done");
  EXPECT_TRUE(busy.at_end());
  EXPECT_TRUE(server_->wait_drained(steady_clock::now() + 10s));
  TestClient late(port());
  EXPECT_FALSE(late.connected());
}

TEST_F(HttpServerTest, CutEndsAnswersWithAnError) {
  serve();
  TestClient client(port());
  ASSERT_TRUE(client.get("/stage"));
  ASSERT_TRUE(stage_->wait_alive(1));
  server_->drain();
  server_->cut(to_api_error({Code::kUnavailable, "[server] stopping"}));
  const auto response = client.response();
  EXPECT_EQ(response.status, 503);
  EXPECT_NE(response.body.find("stopping"), std::string::npos);
  EXPECT_TRUE(server_->wait_drained(steady_clock::now() + 10s));
}

TEST_F(HttpServerTest, DestructionEndsWhatRuns) {
  serve();
  TestClient client(port());
  ASSERT_TRUE(client.get("/stage"));
  ASSERT_TRUE(stage_->emit(0, stream_piece("a", true)));
  ASSERT_TRUE(client.read_until("a"));
  server_.reset();
  EXPECT_TRUE(stage_->wait_alive(0));
  // The stream has no proper end.
  EXPECT_EQ(client.response().status, 0);
}

TEST_F(HttpServerTest, ATakenPortIsAClearError) {
  serve();
  HttpOptions options;
  options.port = port();
  const auto second = HttpServer::start(options, [](HttpRequest) {
    return respond(ResponseHead{}, "");
  });
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find("--port"), std::string::npos);
  options.host = "no.such.host.invalid";
  EXPECT_FALSE(HttpServer::start(options, [](HttpRequest) {
                 return respond(ResponseHead{}, "");
               }).ok());
}

}  // namespace
}  // namespace afterglow
