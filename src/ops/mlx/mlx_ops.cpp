#include "ops/mlx/mlx_ops.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "ops/mlx/mlx_attention.h"
#include "ops/mlx/mlx_gate.h"
#include "ops/mlx/mlx_host_array.h"
#include "ops/mlx/mlx_kv.h"
#include "ops/mlx/mlx_weights.h"

namespace afterglow {
namespace {

constexpr const char* kBuiltWith =
#define AFTERGLOW_TEXT_OF(x) #x
#define AFTERGLOW_TEXT(x) AFTERGLOW_TEXT_OF(x)
    AFTERGLOW_TEXT(MLX_VERSION_MAJOR) "." AFTERGLOW_TEXT(MLX_VERSION_MINOR
    ) "." AFTERGLOW_TEXT(MLX_VERSION_PATCH);
#undef AFTERGLOW_TEXT
#undef AFTERGLOW_TEXT_OF

/// What an exception on its way through means. Requires: inside a handler.
Error current_error(const char* operation) {
  const std::string prefix = "[" + std::string(operation) + "] ";
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {Code::kExhausted, prefix + "MLX found no memory"};
  } catch (const std::exception& e) {
    return {Code::kInternal, prefix + "MLX failed: " + e.what()};
  }
}

class MlxOps final : public Ops {
 public:
  MlxOps(ThreadPool& pool, mx::Device device)
      : pool_(&pool),
        stream_(mx::default_stream(device)),
        on_cpu_(device == mx::Device::cpu),
        rope_(stream_) {}

  std::string describe() const override {
    return "mlx " + std::string(mx::version()) + (on_cpu_ ? " cpu" : " gpu");
  }
  KvType kv_type() const override;
  std::size_t weight_bytes() const override { return weight_bytes_; }

  Result<LinearId> add_linear(
      std::span<const MatrixSource> parts, std::span<const float> bias
  ) override;
  VectorId add_vector(std::span<const float> values) override;

  std::unique_ptr<KvState> new_kv(const KvLayout& layout, PagePool& pool)
      override {
    return std::make_unique<MlxKvState>(this, layout, pool, stream_);
  }

  void begin(const Batch& batch) override;
  Value embed(LinearId table, float scale) override;
  Value linear(const Value& x, LinearId weight) override;
  Value rms_norm(const Value& x, VectorId weight, float eps) override;
  Value attend(Value qkv, const Attention& attention) override;
  Value gated_mlp(
      const Value& x, LinearId gate_up, LinearId down, GateFunction function
  ) override;
  void add(Value& x, const Value& y) override;
  void logits(
      const Value& x,
      LinearId head,
      std::span<const std::size_t> rows,
      float softcap,
      std::span<float> out
  ) override;
  Status end(bool commit) override;

 private:
  void release(int slot) override;

  /// Runs a part of the step; the one place where MLX's exceptions end. Once
  /// one came, the rest of the step does nothing. Returns whether body ran.
  template <class Body>
  bool guard(const Body& body);
  /// A value of the step, from what body makes of it; empty after a failure.
  template <class Body>
  Value record(std::size_t width, const Body& body);
  /// Evaluates outputs and all KV recorded so far.
  void compute(std::vector<mx::array> outputs);

  const mx::array& at(const Value& x) const;
  const MlxLinear& linear_at(LinearId id) const;
  const mx::array& vector_at(VectorId id) const;
  MlxKvState& state_of(const Span& span) const;
  mx::array head_norm(
      const mx::array& x, VectorId weight, float eps, std::size_t head_dim
  ) const;
  mx::array attend_rows(const mx::array& qkv, const Attention& attention);

  ThreadPool* pool_;
  mx::Stream stream_;
  bool on_cpu_;
  // The type of activations and KV; on a GPU the first matrix decides.
  std::optional<mx::Dtype> type_;
  MlxRope rope_;
  std::vector<MlxLinear> linears_;
  std::vector<std::vector<float>> vectors_;
  // Those of vectors_ that a step has used, in the activations' type.
  mutable std::vector<std::optional<mx::array>> ready_vectors_;
  std::size_t weight_bytes_ = 0;

  bool in_step_ = false;
  Batch batch_;
  std::optional<Error> failure_;
  std::vector<std::optional<mx::array>> slots_;
  std::vector<int> free_slots_;
};

// Loading.

KvType MlxOps::kv_type() const {
  if (on_cpu_) {
    return KvType::kF32;
  }
  const mx::Dtype type = type_.value_or(mx::float16);
  return type == mx::float32    ? KvType::kF32
         : type == mx::bfloat16 ? KvType::kBF16
                                : KvType::kF16;
}

Result<LinearId> MlxOps::add_linear(
    std::span<const MatrixSource> parts, std::span<const float> bias
) {
  CHECK(!in_step_, "weights are added between steps");
  try {
    Result<MlxLinear> packed = pack_linear(parts, bias, on_cpu_, *pool_);
    if (!packed.ok()) {
      return packed.error();
    }
    if (!type_) {
      type_ = on_cpu_ ? mx::float32 : dtype_of(parts.front().type);
    }
    weight_bytes_ += packed->bytes();
    linears_.push_back(std::move(packed).value());
  } catch (...) {
    return current_error("mlx.add_linear");
  }
  return LinearId{static_cast<int>(linears_.size()) - 1};
}

VectorId MlxOps::add_vector(std::span<const float> values) {
  vectors_.emplace_back(values.begin(), values.end());
  ready_vectors_.emplace_back();
  weight_bytes_ += values.size_bytes();
  return VectorId{static_cast<int>(vectors_.size()) - 1};
}

// Failures and values.

template <class Body>
bool MlxOps::guard(const Body& body) {
  CHECK(in_step_, "a call outside begin() and end()");
  if (failure_) {
    return false;
  }
  try {
    body();
    return true;
  } catch (...) {
    failure_ = current_error("mlx.step");
    return false;
  }
}

template <class Body>
Value MlxOps::record(std::size_t width, const Body& body) {
  std::optional<mx::array> made;
  guard([&] { made = body(); });
  CHECK(
      !made || static_cast<std::size_t>(made->shape(-1)) == width,
      "a value of another width"
  );
  int slot = static_cast<int>(slots_.size());
  if (free_slots_.empty()) {
    slots_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  slots_[static_cast<std::size_t>(slot)] = std::move(made);
  return Value(*this, slot, width);
}

void MlxOps::release(int slot) {
  slots_[static_cast<std::size_t>(slot)].reset();
  free_slots_.push_back(slot);
}

const mx::array& MlxOps::at(const Value& x) const {
  const auto& slot = slots_.at(static_cast<std::size_t>(x.slot()));
  CHECK(slot.has_value(), "a value that was never made");
  return *slot;
}

const MlxLinear& MlxOps::linear_at(LinearId id) const {
  CHECK(id && static_cast<std::size_t>(id.index) < linears_.size());
  return linears_[static_cast<std::size_t>(id.index)];
}

const mx::array& MlxOps::vector_at(VectorId id) const {
  CHECK(id && static_cast<std::size_t>(id.index) < vectors_.size());
  const auto index = static_cast<std::size_t>(id.index);
  auto& ready = ready_vectors_[index];
  if (!ready) {
    const std::vector<float>& values = vectors_[index];
    const mx::array wide(values.data(), {static_cast<int>(values.size())});
    ready = mx::astype(wide, type_.value_or(mx::float32), stream_);
    mx::eval(*ready);
  }
  return *ready;
}

MlxKvState& MlxOps::state_of(const Span& span) const {
  auto* state = dynamic_cast<MlxKvState*>(span.kv);
  CHECK(state != nullptr && state->owner() == this, "another backend's KV");
  return *state;
}

// A step.

void MlxOps::begin(const Batch& batch) {
  CHECK(!in_step_, "begin() inside a step");
  CHECK(free_slots_.size() == slots_.size(), "a value outlived its step");
  in_step_ = true;
  batch_ = batch;
  failure_.reset();
  std::size_t row = 0;
  for (const Span& span : batch_.spans) {
    CHECK(span.row == row && span.count > 0, "spans cover rows in order");
    row += span.count;
    MlxKvState& state = state_of(span);
    if (!state.broken().empty() && !failure_) {
      failure_ = Error{
          Code::kInternal,
          "[mlx.step] a sequence's KV is unusable: " + state.broken()};
    }
    guard([&] { state.reserve(span.count); });
  }
  CHECK(row == batch_.tokens.size(), "spans cover all tokens");
}

Value MlxOps::embed(LinearId table, float scale) {
  const MlxLinear& from = linear_at(table);
  for (Token token : batch_.tokens) {
    CHECK(
        token >= 0 && static_cast<std::size_t>(token) < from.rows,
        "a token outside the vocabulary"
    );
  }
  return record(from.cols, [&] {
    const mx::array ids(
        batch_.tokens.begin(), {static_cast<int>(batch_.tokens.size())}
    );
    mx::array x = take_rows(from, ids, *type_, stream_);
    if (scale != 1.0F) {
      x = mx::multiply(x, mx::array(scale, x.dtype()), stream_);
    }
    return x;
  });
}

Value MlxOps::linear(const Value& x, LinearId weight) {
  const MlxLinear& layer = linear_at(weight);
  return record(layer.rows, [&] {
    return apply_linear(layer, at(x), stream_);
  });
}

Value MlxOps::rms_norm(const Value& x, VectorId weight, float eps) {
  return record(x.width(), [&] {
    return mx::fast::rms_norm(at(x), vector_at(weight), eps, stream_);
  });
}

mx::array MlxOps::head_norm(
    const mx::array& x, VectorId weight, float eps, std::size_t head_dim
) const {
  if (!weight) {
    return x;
  }
  CHECK(vectors_[static_cast<std::size_t>(weight.index)].size() == head_dim);
  return mx::fast::rms_norm(x, vector_at(weight), eps, stream_);
}

mx::array MlxOps::attend_rows(
    const mx::array& qkv, const Attention& attention
) {
  const int tokens = qkv.shape(0);
  const int heads = static_cast<int>(attention.heads);
  const int kv_heads = static_cast<int>(attention.kv_heads);
  const int dim = static_cast<int>(attention.head_dim);
  const mx::array all =
      mx::reshape(qkv, {tokens, heads + 2 * kv_heads, dim}, stream_);
  std::vector<mx::array> parts =
      mx::split(all, mx::Shape{heads, heads + kv_heads}, 1, stream_);
  parts[0] = head_norm(
      parts[0], attention.q_norm, attention.norm_eps, attention.head_dim
  );
  parts[1] = head_norm(
      parts[1], attention.k_norm, attention.norm_eps, attention.head_dim
  );

  std::optional<mx::array> sinks;
  if (attention.sinks) {
    sinks = mx::astype(vector_at(attention.sinks), qkv.dtype(), stream_);
    CHECK(sinks->shape(0) == heads);
  }

  std::vector<mx::array> outs;
  for (const Span& span : batch_.spans) {
    MlxKvState& state = state_of(span);
    const int first = static_cast<int>(span.row);
    const int last = static_cast<int>(span.row + span.count);
    // Rows of this span as [1, heads, tokens, head_dim], rotated or not.
    const auto rows_of = [&](const mx::array& x, bool turn) {
      const mx::array mine =
          mx::slice(x, {first, 0, 0}, {last, x.shape(1), dim}, stream_);
      const mx::array by_head =
          mx::expand_dims(mx::transpose(mine, {1, 0, 2}, stream_), 0, stream_);
      return turn && attention.rope != nullptr
                 ? rope_.rotate(by_head, *attention.rope, state.length())
                 : by_head;
    };
    const mx::array q = rows_of(parts[0], true);
    const auto [k, v] = state.append(
        attention.layer, rows_of(parts[1], true), rows_of(parts[2], false)
    );
    outs.push_back(attend_span(
        q,
        mx::astype(k, q.dtype(), stream_),
        mx::astype(v, q.dtype(), stream_),
        sinks,
        attention,
        stream_
    ));
  }
  return outs.size() == 1 ? outs.front() : mx::concatenate(outs, 0, stream_);
}

Value MlxOps::attend(Value qkv, const Attention& attention) {
  CHECK(
      qkv.width() ==
          (attention.heads + 2 * attention.kv_heads) * attention.head_dim,
      "the width of the joint projection"
  );
  return record(attention.heads * attention.head_dim, [&] {
    return attend_rows(at(qkv), attention);
  });
}

Value MlxOps::gated_mlp(
    const Value& x, LinearId gate_up, LinearId down, GateFunction function
) {
  const MlxLinear& in = linear_at(gate_up);
  const MlxLinear& out = linear_at(down);
  return record(out.rows, [&] {
    const mx::array both = apply_linear(in, at(x), stream_);
    const std::vector<mx::array> halves = mx::split(both, 2, -1, stream_);
    const mx::array gate = apply_gate(halves[0], function, stream_);
    return apply_linear(out, mx::multiply(gate, halves[1], stream_), stream_);
  });
}

void MlxOps::add(Value& x, const Value& y) {
  guard([&] {
    slots_[static_cast<std::size_t>(x.slot())] = mx::add(at(x), at(y), stream_);
  });
}

void MlxOps::logits(
    const Value& x,
    LinearId head,
    std::span<const std::size_t> rows,
    float softcap,
    std::span<float> out
) {
  const MlxLinear& layer = linear_at(head);
  CHECK(out.size() == rows.size() * layer.rows, "room for the logits");
  if (rows.empty()) {
    return;
  }
  const bool done = guard([&] {
    const std::vector<int> ids(rows.begin(), rows.end());
    const mx::array index(ids.data(), {static_cast<int>(ids.size())});
    mx::array y =
        apply_linear(layer, mx::take(at(x), index, 0, stream_), stream_);
    y = mx::astype(y, mx::float32, stream_);
    if (softcap != 0) {
      const mx::array cap(softcap);
      y = mx::multiply(
          mx::tanh(mx::divide(y, cap, stream_), stream_), cap, stream_
      );
    }
    y = mx::contiguous(y, false, stream_);
    compute({y});
    std::copy_n(y.data<float>(), out.size(), out.begin());
  });
  if (!done) {
    std::fill(out.begin(), out.end(), std::numeric_limits<float>::quiet_NaN());
  }
}

void MlxOps::compute(std::vector<mx::array> outputs) {
  for (const Span& span : batch_.spans) {
    state_of(span).collect(outputs);
  }
  if (outputs.empty()) {
    return;
  }
  try {
    mx::eval(std::move(outputs));
  } catch (...) {
    for (const Span& span : batch_.spans) {
      state_of(span).recover();
    }
    throw;
  }
}

Status MlxOps::end(bool commit) {
  if (commit) {
    guard([&] { compute({}); });
  }
  CHECK(free_slots_.size() == slots_.size(), "a value outlived its step");
  for (const Span& span : batch_.spans) {
    state_of(span).finish(commit && !failure_, span.count);
  }
  in_step_ = false;
  batch_ = {};
  if (failure_) {
    return *std::exchange(failure_, std::nullopt);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Ops>> make_mlx_ops(ThreadPool& pool, MlxDevice device) {
  if (std::string(mx::version()) != kBuiltWith) {
    return Error{
        Code::kUnsupported,
        "[mlx.open] the MLX library found is version " +
            std::string(mx::version()) + ", this was built with " + kBuiltWith +
            "; install that wheel or build again"};
  }
  try {
    return std::unique_ptr<Ops>(std::make_unique<MlxOps>(
        pool,
        device == MlxDevice::kCpu ? mx::Device(mx::Device::cpu)
                                  : mx::default_device()
    ));
  } catch (...) {
    return current_error("mlx.open");
  }
}

}  // namespace afterglow
