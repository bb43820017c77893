#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "ops/cpu/arena.h"
#include "ops/ops.h"

namespace afterglow {

/// Cosines and sines of a step's positions, made once for each Rope and used
/// by all layers. Thread: one thread.
class RopeTables {
 public:
  struct Table {
    const Rope* rope;
    Scratch cosine_memory, sine_memory;
    const float* cosine;  // [T][pairs], times the rope's scale
    const float* sine;
  };

  explicit RopeTables(ThreadPool& pool) : pool_(pool) {}

  /// Forgets the tables; positions[t] is that of token t.
  void begin(std::span<const std::size_t> positions);
  const Table& table(const Rope& rope);

 private:
  ThreadPool& pool_;
  std::span<const std::size_t> positions_;
  std::vector<Table> tables_;
  std::size_t used_ = 0;
};

}  // namespace afterglow
