#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "server/http_server_fixture.h"

namespace afterglow {
namespace {

using testing::HttpServerTest;
using testing::stream_piece;
using testing::TestClient;
using testing::whole;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

TEST_F(HttpServerTest, AnIdleConnectionIsClosed) {
  HttpLimits limits;
  limits.idle = 50ms;
  serve(limits);
  TestClient client(port());
  EXPECT_TRUE(client.at_end());
}

TEST_F(HttpServerTest, ASlowHeaderIsCut) {
  HttpLimits limits;
  limits.header = 100ms;
  serve(limits);
  TestClient client(port());
  ASSERT_TRUE(client.send("GET / HTT"));
  EXPECT_TRUE(client.at_end());
}

TEST_F(HttpServerTest, ASlowBodyIsCut) {
  HttpLimits limits;
  limits.body = 100ms;
  serve(limits);
  TestClient client(port());
  ASSERT_TRUE(
      client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab")
  );
  EXPECT_TRUE(client.at_end());
}

TEST_F(HttpServerTest, ABodyThatTricklesIsCutThoughItNeverStops) {
  HttpLimits limits;
  limits.body = 300ms;
  limits.least_rate = 1000;
  serve(limits);
  TestClient client(port());
  ASSERT_TRUE(
      client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n\r\n")
  );
  const auto begin = steady_clock::now();
  int sent = 0;
  // Each byte comes well before the deadline between two pieces.
  while (client.send("x") && !client.ended_within(20ms)) ++sent;
  EXPECT_LT(steady_clock::now() - begin, 5s);
  EXPECT_GE(steady_clock::now() - begin, 300ms);
  EXPECT_LT(sent, 900);
}

TEST_F(HttpServerTest, ABodyThatComesFastEnoughMayTakeItsTime) {
  HttpLimits limits;
  limits.body = 1000ms;
  limits.least_rate = 1000;
  serve(limits);
  TestClient client(port());
  ASSERT_TRUE(
      client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6000\r\n\r\n")
  );
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(client.send(std::string(100, 'x')));
    ASSERT_FALSE(client.ended_within(30ms));
  }
  EXPECT_EQ(client.response().body, "POST / 6000");
}

TEST_F(HttpServerTest, AnAnswerThatIsSippedIsCut) {
  HttpLimits limits;
  limits.write = 300ms;
  limits.least_rate = 8 << 20;
  limits.lag_bytes = 64 << 20;
  serve(limits);
  TestClient slow(port(), 4096);
  ASSERT_TRUE(slow.get("/stage"));
  ASSERT_TRUE(stage_->emit(0, stream_piece(std::string(32 << 20, 'x'), true)));
  const auto begin = steady_clock::now();
  std::size_t taken = 0;
  while (!stage_->alive_is(0) && steady_clock::now() - begin < 20s) {
    taken += slow.take(1000);
    EXPECT_FALSE(slow.ended_within(5ms));
  }
  EXPECT_TRUE(stage_->alive_is(0));
  EXPECT_LT(taken, 16U << 20);
}

TEST_F(HttpServerTest, ALongAnswerOutlivesAllDeadlines) {
  HttpLimits limits;
  limits.idle = limits.header = limits.body = limits.write = 500ms;
  serve(limits);
  TestClient client(port());
  ASSERT_TRUE(client.get("/stage"));
  ASSERT_TRUE(stage_->wait_alive(1));
  // Twice the deadlines without a byte in either direction.
  EXPECT_FALSE(server_->wait_drained(steady_clock::now() + 1000ms));
  ASSERT_TRUE(stage_->emit(0, whole("late")));
  EXPECT_EQ(client.response().body, "late");
}

TEST_F(HttpServerTest, AReaderThatLagsIsCutAndOthersAreNot) {
  HttpLimits limits;
  limits.lag_bytes = 100'000;
  serve(limits);
  TestClient slow(port(), 4096);
  ASSERT_TRUE(slow.get("/stage"));
  ASSERT_TRUE(stage_->wait_alive(1));
  TestClient other(port());
  ASSERT_TRUE(stage_->emit(0, stream_piece("begin\n", true)));
  // Far more than the sockets' buffers and the limit hold.
  std::size_t pieces = 0;
  for (; pieces < 10'000; ++pieces) {
    ASSERT_TRUE(stage_->emit(0, stream_piece(std::string(10'000, 'x'))));
    const std::lock_guard lock(stage_->mutex);
    if (stage_->alive == 0) break;
  }
  EXPECT_TRUE(stage_->wait_alive(0));
  ASSERT_TRUE(other.get("/other"));
  EXPECT_EQ(other.response().body, "GET /other 0");
}

TEST_F(HttpServerTest, AReaderThatTakesNothingIsCutInTime) {
  HttpLimits limits;
  limits.write = 100ms;
  limits.lag_bytes = 64 << 20;
  serve(limits);
  TestClient slow(port(), 4096);
  ASSERT_TRUE(slow.get("/stage"));
  ASSERT_TRUE(stage_->emit(0, stream_piece(std::string(2 << 20, 'x'), true)));
  EXPECT_TRUE(stage_->wait_alive(0));
}

TEST_F(HttpServerTest, AClientThatLeavesEndsItsExchange) {
  serve();
  for (const bool streaming : {false, true}) {
    TestClient client(port());
    ASSERT_TRUE(client.get("/stage"));
    ASSERT_TRUE(stage_->wait_alive(1));
    if (streaming) {
      ASSERT_TRUE(stage_->emit(1, stream_piece("a\n", true)));
      ASSERT_TRUE(client.read_until("a\n"));
    }
    client.close();
    if (streaming) {
      // Nothing tells a reader that closed from one that only stopped
      // sending, until something is sent to it.
      ASSERT_TRUE(stage_->emit(1, stream_piece("b\n")));
    }
    EXPECT_TRUE(stage_->wait_alive(0)) << streaming;
  }
}

TEST_F(HttpServerTest, AHalfClosedClientGetsItsAnswer) {
  serve();
  {
    TestClient client(port());
    ASSERT_TRUE(client.get("/stage"));
    client.shutdown_write();
    ASSERT_TRUE(stage_->wait_alive(1));
    // The sign of life was asked for, so the close was seen.
    ASSERT_TRUE(client.read_until("100 Continue\r\n\r\n"));
    ASSERT_TRUE(stage_->emit(0, whole("answer")));
    EXPECT_EQ(client.response().body, "answer");
    EXPECT_EQ(client.interim, 1);
    EXPECT_TRUE(client.at_end());
  }
  {
    TestClient client(port());
    ASSERT_TRUE(client.get("/stage"));
    ASSERT_TRUE(stage_->emit(1, stream_piece("a\n", true)));
    ASSERT_TRUE(client.read_until("a\n"));
    client.shutdown_write();
    ASSERT_TRUE(stage_->emit(1, stream_piece("b\n", false, true)));
    EXPECT_EQ(client.response().body, "a\nb\n");
  }
}

}  // namespace
}  // namespace afterglow
