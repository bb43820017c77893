#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/dispatch/kernel_table.h"
#include "ops/cpu/arena.h"
#include "ops/cpu/cpu_kv.h"
#include "ops/ops.h"

namespace afterglow {

/// What the attention of a step works on.
struct AttentionInput {
  const Attention* attention;
  std::span<const Span> spans;  // kv: CpuKv, prepared for the span
  float* qkv;  // [T][(heads + 2 kv_heads) head_dim]; q and k are overwritten
  std::size_t tokens;
  const float* cosine;  // [T][pairs] or null
  const float* sine;
  std::size_t pairs;
  const float* q_norm;  // [head_dim] or null
  const float* k_norm;
  const float* sinks;  // [heads] or null
  float* out;          // [T][heads head_dim]
};

/// Appends K and V to the pages and attends, on the pool.
/// Thread: one thread.
class AttentionRunner {
 public:
  AttentionRunner(const Kernels& kernels, ThreadPool& pool)
      : kernels_(kernels), pool_(pool), scratch_(pool.threads()) {}

  void run(const AttentionInput& input);

 private:
  // Tokens that lie in the same 16 columns of a page.
  struct Append {
    std::size_t span, token, count;
  };
  // Some query rows of a span and a KV head against some of its pages. Row r
  // is head r % group of the KV head's queries at token r / group.
  struct Task {
    std::size_t span, kv_head;
    std::size_t first_row, rows;
    std::size_t first_page, last_page;
    // Where other tasks have the rest of the pages: the first of the partials
    // [pages][rows] that this one leaves, else -1.
    std::ptrdiff_t partial;
  };

  void append(const AttentionInput& in, const Append& part) const;
  void plan(const AttentionInput& in);
  void plan_tasks(const AttentionInput& in);
  void attend(const AttentionInput& in, const Task& task, float* scratch);
  void merge(const AttentionInput& in, const Task& whole, std::size_t row);
  void finish(
      const AttentionInput& in,
      const Task& task,
      std::size_t row,
      const AttendTotal& total
  ) const;

  const Kernels& kernels_;
  ThreadPool& pool_;
  std::vector<Append> appends_;
  std::vector<Task> wholes_;  // all pages of some rows
  std::vector<Task> tasks_;   // the wholes, large ones in parts
  std::vector<Task> merges_;  // the wholes that were parted
  std::vector<Scratch> scratch_;
  std::vector<float*> thread_scratch_;
  Scratch partial_memory_;
  // [partials][head_dim], [partials], [partials]
  float* partial_values_ = nullptr;
  float* partial_largest_ = nullptr;
  float* partial_sum_ = nullptr;
  std::size_t partials_ = 0;
};

}  // namespace afterglow
