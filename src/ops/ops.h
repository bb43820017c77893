#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/kv_layout.h"
#include "base/page.h"
#include "base/result.h"
#include "base/token.h"
#include "kernels/linear/matrix_source.h"
#include "ops/value.h"

namespace afterglow {

/// The KV of one sequence in all layers, in whatever form the backend likes.
/// Thread: the generation thread.
class KvState {
 public:
  virtual ~KvState() = default;

  /// Tokens whose KV is complete in every layer.
  virtual std::size_t length() const = 0;

  /// Makes the first `tokens` tokens of the given pages this sequence's
  /// content. Full pages may be shared; one that is used in part is copied,
  /// since the sequence will write on behind the part.
  /// Requires: length() == 0; pages.size() == ceil(tokens / kPageTokens).
  virtual void restore(std::span<const PagePtr> pages, std::size_t tokens) = 0;

  /// The page that holds tokens [256 index, min(length, 256 (index + 1))),
  /// frozen. A later append to it copies it first.
  /// Requires: 256 index < length().
  virtual PagePtr seal(std::size_t index) = 0;

  /// Forgets all tokens from `tokens` on. Requires: tokens <= length().
  virtual void truncate(std::size_t tokens) = 0;

  /// Bytes of pages (or arrays) held, shared ones included.
  virtual std::size_t bytes() const = 0;
};

/// One sequence's tokens in a step: rows [row, row + count) of the batch,
/// which continue `kv` from kv->length() on.
struct Span {
  std::size_t row = 0;
  std::size_t count = 0;
  KvState* kv = nullptr;
};

/// The ragged input of a step. Spans are in row order and cover all tokens;
/// no two have the same kv.
struct Batch {
  std::span<const Token> tokens;
  std::span<const Span> spans;
  /// Set from any thread to end the step early; checked between layers.
  const std::atomic<bool>* cancel = nullptr;

  bool cancelled() const {
    return cancel != nullptr && cancel->load(std::memory_order_relaxed);
  }
};

/// A weight the backend has taken over. Plain indices, valid for the Ops that
/// made them.
struct LinearId {
  int index = -1;
  explicit operator bool() const { return index >= 0; }
};
struct VectorId {
  int index = -1;
  explicit operator bool() const { return index >= 0; }
};

/// Rotary embedding: pair i of the first 2 * inv_freq.size() dimensions of a
/// head turns by position * inv_freq[i]; the result is scaled by `scale`.
/// Pairs are (i, i + n) in halves, or (2i, 2i + 1) where interleaved.
struct Rope {
  std::vector<double> inv_freq;
  double scale = 1.0;
  bool interleaved = false;
};

/// What attend() does with the joint projection [q heads | k heads | v heads].
struct Attention {
  std::size_t layer = 0;
  std::size_t heads = 0;
  std::size_t kv_heads = 0;
  std::size_t head_dim = 0;
  float scale = 0;             // of q.k before softmax
  const Rope* rope = nullptr;  // null: no rotation
  VectorId q_norm;             // RMS norm per head before rope, if set
  VectorId k_norm;
  float norm_eps = 0;
  std::uint32_t window = 0;  // 0: full; else the last `window` tokens
  float softcap = 0;         // 0: none; else cap * tanh(x / cap)
  // [heads], if set: a score of each head that no key has. It takes its part
  // of the softmax and gives no value.
  VectorId sinks;
};

enum class GateFunction : std::uint8_t { kSilu, kGeluTanh };

/// The vocabulary in which architectures are written, and the one interface
/// behind which a backend computes.
///
/// A step is begin(), calls that build on each other, logits(), end(). What
/// begin() takes is decided by the numeric contract: on the CPU each row's
/// result depends on the model and its own tokens only.
/// Errors: a backend that can fail (MLX) reports at end().
/// Thread: everything on one thread, the generation thread.
class Ops {
 public:
  virtual ~Ops() = default;

  /// Names the arithmetic for identities: "cpu int16", "mlx 0.32.2 cpu".
  virtual std::string describe() const = 0;
  /// The element type in which this backend keeps K and V.
  virtual KvType kv_type() const = 0;
  /// Bytes of weights held.
  virtual std::size_t weight_bytes() const = 0;

  // Loading.

  /// Takes over a linear layer whose output rows are the parts' rows one
  /// after another. Shape: each part [rows_i, cols], the same cols; bias
  /// empty or [sum of rows]. Errors: kUnsupported for a format.
  virtual Result<LinearId> add_linear(
      std::span<const MatrixSource> parts, std::span<const float> bias
  ) = 0;
  virtual VectorId add_vector(std::span<const float> values) = 0;

  // Sequences.

  virtual std::unique_ptr<KvState> new_kv(
      const KvLayout& layout, PagePool& pool
  ) = 0;

  // A step.

  virtual void begin(const Batch& batch) = 0;
  /// Rows of the table, times scale. Shape: [T, cols of table].
  virtual Value embed(LinearId table, float scale) = 0;
  /// x W^T + bias. Shape: [T, in] -> [T, out].
  virtual Value linear(const Value& x, LinearId weight) = 0;
  /// x / sqrt(mean(x^2) + eps) * weight, row by row.
  virtual Value rms_norm(const Value& x, VectorId weight, float eps) = 0;
  /// Norms and rotates q and k, appends k and v to each span's KV, attends.
  /// Shape: [T, (heads + 2 kv_heads) head_dim] -> [T, heads head_dim].
  virtual Value attend(Value qkv, const Attention& attention) = 0;
  /// (f(x G^T) * x U^T) D^T with gate_up = [G; U].
  virtual Value gated_mlp(
      const Value& x, LinearId gate_up, LinearId down, GateFunction function
  ) = 0;
  /// x += y.
  virtual void add(Value& x, const Value& y) = 0;
  /// Logits of the given rows of x (already normed), in their order.
  /// Shape: out [rows.size(), out of head]. softcap as in Attention.
  virtual void logits(
      const Value& x,
      LinearId head,
      std::span<const std::size_t> rows,
      float softcap,
      std::span<float> out
  ) = 0;
  /// Ends the step. Committed, each span's kv has grown by its count; not
  /// committed (or failed), it is as before begin(). All Values of the step
  /// must be gone.
  virtual Status end(bool commit) = 0;

 private:
  friend class Value;
  virtual void release(int slot) = 0;
};

inline void Value::reset() {
  if (owner_ != nullptr) {
    owner_->release(slot_);
    owner_ = nullptr;
  }
}

}  // namespace afterglow
