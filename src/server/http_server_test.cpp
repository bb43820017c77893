#include "server/http_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "server/test_client.h"

namespace afterglow {
namespace {

using testing::TestClient;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

/// What the test sees of exchanges that end when the test says so.
struct Stage {
  std::mutex mutex;
  std::condition_variable changed;
  int alive = 0;
  std::vector<std::function<void(Output)>> outlets;

  bool wait_alive(int count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, 30s, [&] { return alive == count; });
  }
  bool alive_is(int count) {
    const std::lock_guard lock(mutex);
    return alive == count;
  }
  /// Waits for the n-th exchange and gives it output.
  bool emit(std::size_t n, Output output) {
    std::unique_lock lock(mutex);
    if (!changed.wait_for(lock, 30s, [&] { return outlets.size() > n; })) {
      return false;
    }
    outlets[n](std::move(output));
    return true;
  }
};

class Staged : public Exchange {
 public:
  explicit Staged(std::shared_ptr<Stage> stage) : stage_(std::move(stage)) {
    const std::lock_guard lock(stage_->mutex);
    ++stage_->alive;
    stage_->changed.notify_all();
  }
  ~Staged() override {
    {
      const std::lock_guard lock(state_->mutex);
      state_->wake = nullptr;
    }
    const std::lock_guard lock(stage_->mutex);
    --stage_->alive;
    stage_->changed.notify_all();
  }
  void start(std::function<void()> wake) override {
    {
      const std::lock_guard lock(state_->mutex);
      state_->wake = std::move(wake);
    }
    const std::lock_guard lock(stage_->mutex);
    stage_->outlets.push_back([state = state_](Output output) {
      const std::lock_guard lock(state->mutex);
      if (!state->wake) return;
      if (output.head) state->output.head = std::move(output.head);
      state->output.body += output.body;
      state->output.done = output.done;
      state->wake();
    });
    stage_->changed.notify_all();
  }
  Output take() override {
    const std::lock_guard lock(state_->mutex);
    return std::exchange(state_->output, {});
  }
  void fail(const ApiError& error) override {
    const std::lock_guard lock(state_->mutex);
    state_->output = error_output(error);
  }

 private:
  struct State {
    std::mutex mutex;
    std::function<void()> wake;
    Output output;
  };
  std::shared_ptr<Stage> stage_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

Output stream_piece(std::string body, bool first = false, bool done = false) {
  Output output;
  if (first) {
    output.head.emplace();
    output.head->streaming = true;
    output.head->content_type = "text/event-stream";
  }
  output.body = std::move(body);
  output.done = done;
  return output;
}

Output whole(std::string body) {
  Output output;
  output.head.emplace();
  output.body = std::move(body);
  output.done = true;
  return output;
}

/// Throws when it is started, or when its output is taken.
class Faulty : public Exchange {
 public:
  explicit Faulty(bool at_start) : at_start_(at_start) {}
  void start(std::function<void()> wake) override {
    if (at_start_) throw std::runtime_error("no start");
    wake();
  }
  Output take() override { throw std::runtime_error("no output"); }
  void fail(const ApiError&) override {}

 private:
  const bool at_start_;
};

class HttpServerTest : public ::testing::Test {
 protected:
  void serve(HttpLimits limits = {}, const char* host = "127.0.0.1") {
    HttpOptions options;
    options.host = host;
    options.port = 0;
    options.limits = limits;
    auto started = HttpServer::start(options, [this](HttpRequest request) {
      return handle(std::move(request));
    });
    ASSERT_TRUE(started.ok()) << started.error().message;
    server_ = *std::move(started);
  }
  void TearDown() override { server_.reset(); }

  std::unique_ptr<Exchange> handle(HttpRequest request) {
    if (request.path == "/stage") return std::make_unique<Staged>(stage_);
    if (request.path == "/throw") throw std::runtime_error("no luck");
    if (request.path == "/full") throw std::bad_alloc();
    if (request.path == "/throw/start") return std::make_unique<Faulty>(true);
    if (request.path == "/throw/take") return std::make_unique<Faulty>(false);
    if (request.path == "/who") {
      return respond(
          ResponseHead{},
          request.client + (request.over_loopback ? " loopback" : " other")
      );
    }
    return respond(
        ResponseHead{},
        request.method + " " + request.path + " " +
            std::to_string(request.body.size())
    );
  }

  std::uint16_t port() const { return server_->port(); }

  std::shared_ptr<Stage> stage_ = std::make_shared<Stage>();
  std::unique_ptr<HttpServer> server_;
};

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

TEST_F(HttpServerTest, TooManyConnectionsAreToldSo) {
  HttpLimits limits;
  limits.connections = 2;
  serve(limits);
  TestClient first(port());
  TestClient second(port());
  first.get("/stage");
  second.get("/stage");
  ASSERT_TRUE(stage_->wait_alive(2));
  TestClient third(port());
  third.get("/");
  EXPECT_EQ(third.response().status, 503);
  ASSERT_TRUE(stage_->emit(0, whole("a")));
  ASSERT_TRUE(stage_->emit(1, whole("a")));
  EXPECT_EQ(first.response().body, "a");
  EXPECT_EQ(second.response().body, "a");
}

TEST_F(HttpServerTest, TheLongestIdleConnectionMakesRoom) {
  HttpLimits limits;
  limits.connections = 3;
  serve(limits);
  TestClient busy(port());
  TestClient older(port());
  TestClient newer(port());
  busy.get("/stage");
  ASSERT_TRUE(stage_->wait_alive(1));
  for (int i = 0; i < 10; ++i) {
    newer.get("/");
    EXPECT_EQ(newer.response().status, 200);
  }
  TestClient next(port());
  next.get("/next");
  EXPECT_EQ(next.response().body, "GET /next 0");
  EXPECT_TRUE(older.at_end());
  newer.get("/still");
  EXPECT_EQ(newer.response().body, "GET /still 0");
  ASSERT_TRUE(stage_->emit(0, whole("done")));
  EXPECT_EQ(busy.response().body, "done");
}

TEST_F(HttpServerTest, IdleConnectionsKeepNobodyOut) {
  HttpLimits limits;
  limits.connections = 20;
  serve(limits);
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 200; ++i) {
    clients.push_back(std::make_unique<TestClient>(port()));
    clients.back()->get("/x");
    EXPECT_EQ(clients.back()->response().status, 200) << i;
  }
  EXPECT_LE(server_->connections(), 21U);
}

TEST_F(HttpServerTest, WithoutDescriptorsTheIdlestMakesRoom) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "UBSan, built in with it, looks at objects through pipes";
#endif
  serve();
  TestClient idle(port());
  ASSERT_TRUE(idle.get("/"));
  EXPECT_EQ(idle.response().status, 200);

  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int free = ::fcntl(0, F_DUPFD, 0);  // the lowest, as all are
  ASSERT_GE(free, 0);
  ::close(free);
  rlimit low = before;
  low.rlim_cur = static_cast<rlim_t>(free) + 1;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  TestClient next(port());  // has the last one
  const bool sent = next.get("/next");
  const auto response = next.response();
  const bool closed_for_nobody = next.ended_within(300ms);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);

  EXPECT_TRUE(sent);
  EXPECT_FALSE(closed_for_nobody);
  EXPECT_EQ(response.body, "GET /next 0");
  EXPECT_TRUE(idle.at_end());
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
