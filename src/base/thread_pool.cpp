#include "base/thread_pool.h"

#include <chrono>

#include "base/check.h"

namespace afterglow {
namespace {

// Longer than the pause between two jobs of a decode step, short enough to
// leave the cores to others when idle.
constexpr auto kSpin = std::chrono::microseconds(100);

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until the word differs from old or kSpin has passed.
template <class T>
T spin_while(const std::atomic<T>& word, T old) {
  auto deadline = std::chrono::steady_clock::now() + kSpin;
  while (true) {
    for (int i = 0; i < 64; ++i) {
      T now = word.load(std::memory_order_acquire);
      if (now != old) {
        return now;
      }
      pause();
    }
    if (std::chrono::steady_clock::now() > deadline) {
      return old;
    }
  }
}

}  // namespace

int thread_count(int wanted) {
  if (wanted > 0) {
    return wanted;
  }
  unsigned cores = std::thread::hardware_concurrency();
  return cores == 0 ? 1 : static_cast<int>(cores);
}

ThreadPool::ThreadPool(int threads) {
  CHECK(threads >= 1);
  for (int i = 1; i < threads; ++i) {
    workers_.emplace_back([this, i] { worker_loop(i); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_.store(true);
  job_.fetch_add(1, std::memory_order_release);
  job_.notify_all();
  for (std::thread& worker : workers_) {
    worker.join();
  }
}

void ThreadPool::run_erased(
    std::size_t blocks, Call call, const void* context
) {
  CHECK(blocks < UINT32_MAX);
  if (workers_.empty() || blocks <= 1) {
    for (std::size_t block = 0; block < blocks; ++block) {
      call(context, block, 0);
    }
    return;
  }
  call_ = call;
  context_ = context;
  blocks_ = blocks;
  finished_.store(0, std::memory_order_relaxed);
  std::uint32_t number = job_.load(std::memory_order_relaxed) + 1;
  claim_.store(std::uint64_t{number} << 32 | blocks, std::memory_order_release);
  job_.store(number, std::memory_order_release);
  job_.notify_all();

  work(0);
  auto all = static_cast<std::uint32_t>(blocks);
  std::uint32_t done = finished_.load(std::memory_order_acquire);
  while (done != all) {
    if (spin_while(finished_, done) == done) {
      finished_.wait(done, std::memory_order_acquire);
    }
    done = finished_.load(std::memory_order_acquire);
  }
}

void ThreadPool::work(int thread) {
  std::uint64_t claim = claim_.load(std::memory_order_acquire);
  while (true) {
    auto left = static_cast<std::uint32_t>(claim);
    if (left == 0) {
      return;
    }
    if (!claim_.compare_exchange_weak(
            claim,
            claim - 1,
            std::memory_order_acq_rel,
            std::memory_order_acquire
        )) {
      continue;
    }
    call_(context_, blocks_ - left, thread);
    finished_.fetch_add(1, std::memory_order_acq_rel);
    finished_.notify_one();
    claim = claim_.load(std::memory_order_acquire);
  }
}

void ThreadPool::worker_loop(int thread) {
  std::uint32_t seen = 0;
  while (true) {
    seen = await_job(seen);
    if (stopping_.load()) {
      return;
    }
    work(thread);
  }
}

std::uint32_t ThreadPool::await_job(std::uint32_t seen) {
  std::uint32_t now = spin_while(job_, seen);
  while (now == seen) {
    job_.wait(seen, std::memory_order_acquire);
    now = job_.load(std::memory_order_acquire);
  }
  return now;
}

}  // namespace afterglow
