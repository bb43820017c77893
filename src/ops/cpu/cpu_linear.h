#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/huge_arena.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "kernels/dispatch/kernel_table.h"
#include "kernels/linear/matrix_source.h"
#include "ops/cpu/arena.h"
#include "ops/numerics.h"

namespace afterglow {

/// The packed weights of one linear layer: a segment for each run of parts of
/// one format.
class CpuLinear {
 public:
  struct Segment {
    PackedMatrix matrix;
    std::size_t first_row = 0;
  };

  /// Packs the parts on the pool, into the arena's memory. Errors: kUnsupported
  /// for a format, kInvalidArgument where shapes don't fit together.
  static Result<CpuLinear> pack(
      std::span<const MatrixSource> parts,
      std::span<const float> bias,
      ThreadPool& pool,
      HugeArena& memory
  );

  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  std::size_t bytes() const;
  const std::vector<Segment>& segments() const { return segments_; }
  /// [rows] or null.
  const float* bias() const { return bias_.empty() ? nullptr : bias_.data(); }
  /// Shape: out [cols]. Thread: any.
  void decode_row(std::size_t row, float* out) const;

 private:
  std::size_t rows_ = 0;
  std::size_t cols_ = 0;
  std::vector<Segment> segments_;
  std::vector<float> bias_;
};

/// Where the inputs of a linear layer come from: row(context, t) makes row t
/// ready and returns it. Called once for each token, from any thread.
struct InputRows {
  const float* (*row)(const void* context, std::size_t token);
  const void* context;
};

/// Runs linear layers on the pool with scratch memory of its own.
/// Thread: one thread.
class LinearRunner {
 public:
  LinearRunner(const Kernels& kernels, ThreadPool& pool)
      : kernels_(kernels),
        pool_(pool),
        panels_(pool.threads()),
        panel_pointers_(pool.threads()) {}

  /// y[t][r] = x[t] . W[r] + bias[r]. Shape: x rows [cols], y [tokens, rows].
  void run(
      const InputRows& x,
      std::size_t tokens,
      const CpuLinear& weight,
      Activations mode,
      float* y
  );

 private:
  void run_int(
      const CpuLinear& weight,
      const CpuLinear::Segment& segment,
      std::size_t tokens,
      std::int32_t levels,
      float* y
  );
  void run_f32(
      const CpuLinear& weight,
      const CpuLinear::Segment& segment,
      std::size_t tokens,
      float* y
  );
  // Row t of the inputs; made ready at the first call.
  const float* input(std::size_t token);
  // Over all tokens, on the pool where that pays.
  template <class Body>
  void for_tokens(std::size_t tokens, const Body& body);

  const Kernels& kernels_;
  ThreadPool& pool_;
  InputRows x_{};
  std::vector<const float*> rows_;
  Scratch codes_, groups_, inputs_;
  std::vector<Scratch> panels_;
  std::vector<float*> panel_pointers_;
};

}  // namespace afterglow
