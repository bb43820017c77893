#include "engine/fair_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace afterglow {
namespace {

using Queue = FairQueue<int>;

// In what order items come when none of them runs for long.
std::vector<int> drain(Queue& queue) {
  std::vector<int> order;
  auto none = [](const std::string&) { return 0; };
  while (auto item = queue.take(none, [](int) { return true; })) {
    order.push_back(*item);
  }
  return order;
}

TEST(FairQueue, ClientsTakeTurnsAndAClientsOwnKeepTheirOrder) {
  Queue queue;
  for (int i : {10, 11, 12, 13}) {
    queue.push("a", i);
  }
  for (int i : {20, 21}) {
    queue.push("b", i);
  }
  queue.push("c", 30);
  EXPECT_EQ(drain(queue), (std::vector<int>{10, 20, 30, 11, 21, 12, 13}));
}

TEST(FairQueue, OneWhoComesLateIsNotBehindAllOfAnother) {
  Queue queue;
  for (int i = 0; i < 50; ++i) {
    queue.push("a", i);
  }
  auto none = [](const std::string&) { return 0; };
  EXPECT_EQ(queue.take(none, [](int) { return true; }), 0);
  queue.push("b", 100);
  EXPECT_EQ(queue.take(none, [](int) { return true; }), 100);
}

TEST(FairQueue, WhoKeepsJustOneWaitingTakesTurnsToo) {
  // One place. Whoever gets it sends another one at once, so that "a" has one
  // that runs and one that waits, or none that runs and one that waits.
  Queue queue;
  std::string runs;
  auto running = [&](const std::string& client) {
    return client == runs ? 1 : 0;
  };
  queue.push("a", 1);
  queue.push("b", 2);
  queue.push("b", 2);
  int places[3] = {};
  for (int i = 0; i < 20; ++i) {
    runs.clear();  // it has ended
    const auto item = queue.take(running, [](int) { return true; });
    ASSERT_TRUE(item.has_value());
    ++places[*item];
    runs = *item == 1 ? "a" : "b";
    // Others look for a place in vain while it runs.
    EXPECT_EQ(queue.take(running, [](int) { return false; }), std::nullopt);
    queue.push(runs, *item);
  }
  EXPECT_EQ(places[1], 10);
  EXPECT_EQ(places[2], 10);
}

TEST(FairQueue, WhoHasTheFewestRunningGoesFirst) {
  Queue queue;
  queue.push("a", 1);
  queue.push("b", 2);
  queue.push("c", 3);
  auto running = [](const std::string& client) {
    return client == "a" ? 5 : client == "b" ? 2 : 3;
  };
  auto any = [](int) { return true; };
  EXPECT_EQ(queue.take(running, any), 2);
  EXPECT_EQ(queue.take(running, any), 3);
  EXPECT_EQ(queue.take(running, any), 1);
  EXPECT_EQ(queue.take(running, any), std::nullopt);
}

TEST(FairQueue, ThoseThatCannotGoHoldNobodyUp) {
  Queue queue;
  for (int i : {1, 2, 3}) {
    queue.push("a", i);
  }
  queue.push("b", 5);
  auto none = [](const std::string&) { return 0; };
  auto even = [](int item) { return item % 2 == 0; };
  EXPECT_EQ(queue.take(none, even), 2);
  EXPECT_EQ(queue.take(none, even), std::nullopt);
  queue.erase_if([](int item) { return item == 1; });
  EXPECT_EQ(drain(queue), (std::vector<int>{5, 3}));
}

}  // namespace
}  // namespace afterglow
