#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <thread>
#include <vector>

namespace afterglow {
namespace {

TEST(ThreadPool, EachBlockRunsOnce) {
  for (int threads = 1; threads <= 4; ++threads) {
    ThreadPool pool(threads);
    for (std::size_t blocks : {0, 1, 2, 3, 7, 64, 1000}) {
      for (int repeat = 0; repeat < 50; ++repeat) {
        std::vector<int> runs(blocks, 0);
        pool.run(blocks, [&](std::size_t block, int thread) {
          ASSERT_LT(thread, threads);
          ++runs[block];
        });
        ASSERT_EQ(runs, std::vector<int>(blocks, 1));
      }
    }
  }
}

TEST(ThreadPool, JobsAfterSleepingWorkersAreComplete) {
  ThreadPool pool(3);
  for (int repeat = 0; repeat < 20; ++repeat) {
    // Outlasts the workers' spin, so that they are asleep or falling asleep.
    auto until =
        std::chrono::steady_clock::now() + std::chrono::microseconds(150);
    while (std::chrono::steady_clock::now() < until) {
    }
    std::vector<std::size_t> squares(100);
    pool.run(squares.size(), [&](std::size_t block, int) {
      squares[block] = block * block;
    });
    for (std::size_t i = 0; i < squares.size(); ++i) {
      ASSERT_EQ(squares[i], i * i);
    }
  }
}

double processor_seconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9;
}

TEST(ThreadPool, IdleWorkersLeaveTheCoresAlone) {
  ThreadPool pool(3);
  pool.run(100, [](std::size_t, int) {});
  double before = processor_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  // Two workers that spun would take 300 ms each where there are the cores.
  EXPECT_LT(processor_seconds() - before, 0.05);
}

TEST(ThreadPool, OneAndMoreAreTakenAndZeroIsEachCore) {
  EXPECT_EQ(thread_count(1), 1);
  EXPECT_EQ(thread_count(7), 7);
  EXPECT_GE(thread_count(0), 1);
}

}  // namespace
}  // namespace afterglow
