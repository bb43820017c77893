#include "server/http_connections.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/http_server_fixture.h"

namespace afterglow {
namespace {

using testing::HttpServerTest;
using testing::TestClient;
using testing::whole;
using namespace std::chrono_literals;

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

}  // namespace
}  // namespace afterglow
