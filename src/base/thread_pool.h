#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace afterglow {

/// The threads that a setting asks for, where 0 is one for each core.
int thread_count(int wanted);

/// Splits a job into numbered blocks that threads claim by an atomic counter.
/// Which thread computes a block is unspecified, so results must not depend
/// on it. Workers spin for a short while after a job, then sleep.
/// Thread: run() from one thread at a time, never from inside a body.
class ThreadPool {
 public:
  /// Units: threads counts the caller of run(), so 1 starts none.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(block, thread) once for each block in [0, blocks), with
  /// thread in [0, threads()); returns when all have returned. What bodies
  /// wrote is visible to the caller. Neither allocates nor locks.
  /// Requires: body does not throw; blocks < 2^32.
  template <class Body>
  void run(std::size_t blocks, const Body& body) {
    run_erased(
        blocks,
        [](const void* context, std::size_t block, int thread) {
          (*static_cast<const Body*>(context))(block, thread);
        },
        &body
    );
  }

 private:
  using Call = void (*)(const void*, std::size_t, int);

  void run_erased(std::size_t blocks, Call call, const void* context);
  void work(int thread);
  void worker_loop(int thread);
  std::uint32_t await_job(std::uint32_t seen);

  // A job. Written by run() before claim_ is published; read only by a thread
  // that has claimed a block of it, which keeps the job alive.
  Call call_ = nullptr;
  const void* context_ = nullptr;
  std::size_t blocks_ = 0;

  // High half: job number; low half: blocks not yet claimed.
  alignas(64) std::atomic<std::uint64_t> claim_{0};
  alignas(64) std::atomic<std::uint32_t> finished_{0};
  alignas(64) std::atomic<std::uint32_t> job_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> workers_;
};

}  // namespace afterglow
