#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/http_server_fixture.h"

namespace afterglow {
namespace {

using testing::HttpServerTest;
using testing::stream_piece;
using testing::TestClient;
using testing::whole;

TEST_F(HttpServerTest, AnswersSeveralRequestsOnOneConnection) {
  serve();
  TestClient client(port());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.post("/a%20b?q", std::string(i, 'x')));
    const auto response = client.response();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "POST /a b " + std::to_string(i));
  }
  EXPECT_EQ(server_->connections(), 1U);
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrder) {
  serve();
  TestClient client(port());
  std::string all;
  for (const char* path : {"/1", "/2", "/3"}) {
    all += std::string("GET ") + path + " HTTP/1.1\r\nHost: x\r\n\r\n";
  }
  ASSERT_TRUE(client.send(all));
  EXPECT_EQ(client.response().body, "GET /1 0");
  EXPECT_EQ(client.response().body, "GET /2 0");
  EXPECT_EQ(client.response().body, "GET /3 0");
}

TEST_F(HttpServerTest, TheNextRequestMayComeWhileOneIsAnswered) {
  serve();
  TestClient client(port());
  ASSERT_TRUE(client.get("/stage"));
  ASSERT_TRUE(client.get("/next"));
  ASSERT_TRUE(stage_->emit(0, whole("first")));
  EXPECT_EQ(client.response().body, "first");
  EXPECT_EQ(client.response().body, "GET /next 0");
}

TEST_F(HttpServerTest, ClosesWhenTheClientAsksForIt) {
  serve();
  TestClient client(port());
  ASSERT_TRUE(
      client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
  );
  EXPECT_NE(
      client.response().head.find("Connection: close"), std::string::npos
  );
  EXPECT_TRUE(client.at_end());
}

TEST_F(HttpServerTest, ChunkedBodiesAndExpectationsWork) {
  serve();
  TestClient client(port());
  ASSERT_TRUE(client.send(
      "POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
      "Expect: 100-continue\r\n\r\n"
  ));
  ASSERT_TRUE(client.read_until("100 Continue\r\n\r\n"));
  ASSERT_TRUE(client.send("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"));
  EXPECT_EQ(client.response().body, "POST /c 5");
  EXPECT_EQ(client.interim, 1);
}

TEST_F(HttpServerTest, StreamsPiecesAsTheyCome) {
  serve();
  TestClient client(port());
  ASSERT_TRUE(client.get("/stage"));
  ASSERT_TRUE(stage_->emit(0, stream_piece("one\n", true)));
  ASSERT_TRUE(client.read_until("one\n"));
  ASSERT_TRUE(stage_->emit(0, stream_piece("two\n")));
  ASSERT_TRUE(client.read_until("two\n"));
  ASSERT_TRUE(stage_->emit(0, stream_piece("", false, true)));
  EXPECT_EQ(client.response().body, "one\ntwo\n");
  ASSERT_TRUE(client.get("/again"));
  EXPECT_EQ(client.response().body, "GET /again 0");
}

TEST_F(HttpServerTest, LimitsHaveTheirStatus) {
  HttpLimits limits;
  limits.header_bytes = 4096;
  limits.body_bytes = 10'000;
  serve(limits);
  struct Case {
    std::string request;
    int status;
  };
  const std::string host = " HTTP/1.1\r\nHost: x\r\n";
  const std::vector<Case> table = {
      {"POST /" + host + "Content-Length: 10000\r\n\r\n" +
           std::string(10'000, 'x'),
       200},
      {"POST /" + host + "Content-Length: 10001\r\n\r\n" +
           std::string(10'001, 'x'),
       413},
      {"POST /" + host + "Content-Length: 99999999999\r\n\r\n", 413},
      {"POST /" + host + "Transfer-Encoding: chunked\r\n\r\n4e20\r\n" +
           std::string(20'000, 'x') + "\r\n0\r\n\r\n",
       413},
      {"GET /" + std::string(5000, 'a') + host + "\r\n", 431},
      {"GET /" + host + "A: " + std::string(5000, 'a') + "\r\n\r\n", 431},
      {"nonsense\r\n\r\n", 400},
      {"GET / HTTP/7.1\r\n\r\n", 400},
      {"GET /" + host + "bad header\r\n\r\n", 400},
      {"POST /" + host + "Content-Length: x\r\n\r\n", 400},
      {"POST /" + host + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
       400},
      {"POST /" + host + "Content-Length: 2\r\nExpect: magic\r\n\r\nab", 417},
  };
  for (const Case& c : table) {
    TestClient client(port());
    client.send(c.request);
    const auto response = client.response();
    EXPECT_EQ(response.status, c.status) << c.request.substr(0, 80);
    if (c.status >= 400) {
      EXPECT_NE(response.body.find("\"error\""), std::string::npos);
    }
  }
}

TEST_F(HttpServerTest, ALargeRefusedBodyStillGetsItsAnswer) {
  HttpLimits limits;
  limits.body_bytes = 1000;
  serve(limits);
  TestClient client(port());
  client.post("/", std::string(8 << 20, 'x'));
  EXPECT_EQ(client.response().status, 413);
}

TEST_F(HttpServerTest, BodiesTogetherAreBounded) {
  HttpLimits limits;
  limits.all_bodies_bytes = 100'000;
  serve(limits);
  TestClient first(port());
  ASSERT_TRUE(first.send(
      "POST /stage HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n" +
      std::string(60'000, 'x')
  ));
  // What is read counts until it has been answered.
  ASSERT_TRUE(stage_->wait_alive(1));
  {
    TestClient second(port());
    second.post("/second", std::string(60'000, 'y'));
    const auto response = second.response();
    EXPECT_EQ(response.status, 503);
    EXPECT_NE(response.head.find("Retry-After: "), std::string::npos);
    TestClient small(port());
    small.post("/small", std::string(5'000, 'y'));
    EXPECT_EQ(small.response().status, 200);
  }
  ASSERT_TRUE(stage_->emit(0, whole("done")));
  EXPECT_EQ(first.response().body, "done");
  for (int i = 0; i < 3; ++i) {
    first.post("/second", std::string(60'000, 'y'));
    EXPECT_EQ(first.response().body, "POST /second 60000");
  }
}

}  // namespace
}  // namespace afterglow
