#pragma once

#include <cstddef>

#include "base/aligned_buffer.h"
#include "base/thread_pool.h"

namespace afterglow {

/// Measures how fast all threads of a pool together read memory that lies in
/// no cache: the bound of whatever streams weights.
/// Thread: one thread, which may run jobs on the pool.
class MemorySpeed {
 public:
  static constexpr std::size_t kBytes = std::size_t{256} << 20;

  explicit MemorySpeed(ThreadPool& pool);

  /// Bytes a second of the fastest of several passes over kBytes; takes about
  /// a tenth of a second.
  double measure();

 private:
  double pass();

  ThreadPool& pool_;
  AlignedBuffer memory_;
};

}  // namespace afterglow
