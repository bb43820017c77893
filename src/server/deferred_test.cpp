#include "server/deferred.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace afterglow {
namespace {

using namespace std::chrono_literals;

/// Waits for the exchange's whole output.
Output output_of(Exchange& exchange) {
  std::promise<void> woken;
  exchange.start([&woken] { woken.set_value(); });
  if (woken.get_future().wait_for(30s) != std::future_status::ready) return {};
  return exchange.take();
}

Output whole(std::string body) {
  Output output;
  output.head.emplace();
  output.body = std::move(body);
  output.done = true;
  return output;
}

TEST(Deferred, AnswersWhatTheWorkMakes) {
  Workers workers(1);
  const auto exchange = defer(workers, "one", [] { return whole("made"); });
  EXPECT_EQ(output_of(*exchange).body, "made");
}

TEST(Deferred, WorkThatThrowsIsAnError) {
  Workers workers(1);
  const auto broken = defer(workers, "one", []() -> Output {
    throw std::runtime_error("no luck");
  });
  const Output output = output_of(*broken);
  ASSERT_TRUE(output.head);
  EXPECT_EQ(output.head->status, 500U);
  EXPECT_NE(output.body.find("no luck"), std::string::npos);
  const auto full =
      defer(workers, "one", []() -> Output { throw std::bad_alloc(); });
  EXPECT_EQ(output_of(*full).head->status, 503U);
  const auto next = defer(workers, "one", [] { return whole("next"); });
  EXPECT_EQ(output_of(*next).body, "next");
}

TEST(Deferred, WorkThatNobodyWaitsForIsDroppedWithAllItHolds) {
  std::promise<void> release;
  std::promise<void> begun;
  std::atomic<int> ran{0};
  {
    Workers workers(1);
    workers.post("one", [&] {
      begun.set_value();
      release.get_future().wait();
    });
    begun.get_future().wait();
    const auto body = std::make_shared<std::string>(1 << 20, 'x');
    const std::weak_ptr<std::string> held = body;
    for (int i = 0; i < 100; ++i) {
      const auto left = defer(workers, "one", [&ran, body] {
        ++ran;
        return whole(*body);
      });
      left->start([] {});
    }
    EXPECT_EQ(held.use_count(), 1);  // ours
    release.set_value();
  }
  EXPECT_EQ(ran, 0);
}

TEST(Workers, AJobThatThrowsEndsNoThread) {
  Workers workers(1);
  workers.post("one", [] { throw std::runtime_error("no luck"); });
  std::promise<void> done;
  workers.post("one", [&done] { done.set_value(); });
  EXPECT_EQ(done.get_future().wait_for(30s), std::future_status::ready);
}

TEST(Workers, OneClientLeavesAThreadToOthers) {
  std::promise<void> release;
  const auto released = release.get_future().share();
  std::promise<void> done;
  std::vector<std::string> order;
  std::mutex mutex;
  Workers workers(2);  // ends before what its jobs use
  const auto note = [&](const char* name) {
    return [&order, &mutex, name] {
      const std::lock_guard lock(mutex);
      order.emplace_back(name);
    };
  };
  workers.post("one", [released] { released.wait(); });
  for (int i = 0; i < 3; ++i) workers.post("one", note("one"));
  EXPECT_EQ(workers.jobs(), 4U);
  workers.post("two", note("two"));
  workers.post("two", [&done] { done.set_value(); });
  // Though there is a thread, none of the first one's is begun on it.
  EXPECT_EQ(done.get_future().wait_for(30s), std::future_status::ready);
  {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(order, std::vector<std::string>{"two"});
  }
  release.set_value();
}

TEST(Workers, ClientsTakeTurnsOnASingleThread) {
  std::promise<void> release;
  const auto released = release.get_future().share();
  std::string order;
  {
    Workers workers(1);
    workers.post("a", [released] { released.wait(); });
    for (int i = 0; i < 3; ++i) workers.post("a", [&order] { order += 'a'; });
    for (int i = 0; i < 3; ++i) workers.post("b", [&order] { order += 'b'; });
    release.set_value();
  }
  EXPECT_EQ(order, "bababa");
}

}  // namespace
}  // namespace afterglow
