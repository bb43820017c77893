#include "ops/cpu/cpu_ops.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "kernels/dispatch/dispatch.h"
#include "ops/cpu/arena.h"
#include "ops/cpu/cpu_attention.h"
#include "ops/cpu/cpu_kv.h"
#include "ops/cpu/cpu_linear.h"
#include "ops/cpu/rope_table.h"

namespace afterglow {
namespace {

class CpuOps final : public Ops {
 public:
  CpuOps(ThreadPool& pool, Activations mode, const Kernels& kernels)
      : pool_(pool),
        mode_(mode),
        kernels_(kernels),
        linear_(kernels, pool),
        attention_(kernels, pool),
        ropes_(pool) {}

  std::string describe() const override {
    return std::string("cpu ") + to_string(mode_);
  }
  KvType kv_type() const override {
    return mode_ == Activations::kF32 ? KvType::kF32 : KvType::kF16;
  }
  std::size_t weight_bytes() const override;

  Result<LinearId> add_linear(
      std::span<const MatrixSource> parts, std::span<const float> bias
  ) override;
  VectorId add_vector(std::span<const float> values) override;
  std::unique_ptr<KvState> new_kv(const KvLayout& layout, PagePool& pool)
      override {
    return std::make_unique<CpuKv>(layout, pool);
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
  void release(int slot) override { arena_.release(slot); }

  Value make(std::size_t width) {
    return {*this, arena_.take(tokens_.size() * width), width};
  }
  float* row(const Value& value, std::size_t token) {
    return arena_.data(value.slot()) + token * value.width();
  }
  const float* vector_or_null(VectorId id) const {
    return id ? vectors_[id.index].data() : nullptr;
  }
  // Over all tokens; on the pool from so many tokens on that it pays.
  template <class Body>
  void for_tokens(const Body& body) {
    constexpr std::size_t kChunk = 8;
    std::size_t tokens = tokens_.size();
    auto run_chunk = [&](std::size_t chunk, int) {
      std::size_t last = std::min(tokens, (chunk + 1) * kChunk);
      for (std::size_t t = chunk * kChunk; t < last; ++t) {
        body(t);
      }
    };
    std::size_t chunks = (tokens + kChunk - 1) / kChunk;
    if (chunks <= 1) {
      run_chunk(0, 0);
    } else {
      pool_.run(chunks, run_chunk);
    }
  }
  // The linear layer of rows that `row_of(token)` makes ready.
  template <class RowOf>
  void run_linear(
      const RowOf& row_of,
      std::size_t tokens,
      const CpuLinear& weight,
      Activations mode,
      float* y
  ) {
    InputRows rows{
        [](const void* context, std::size_t token) -> const float* {
          return (*static_cast<const RowOf*>(context))(token);
        },
        &row_of};
    linear_.run(rows, tokens, weight, mode, y);
  }

  ThreadPool& pool_;
  Activations mode_;
  const Kernels& kernels_;
  HugeArena memory_;  // of all linears_
  std::vector<CpuLinear> linears_;
  std::vector<std::vector<float>> vectors_;
  Arena arena_;
  LinearRunner linear_;
  AttentionRunner attention_;
  RopeTables ropes_;

  // The step.
  bool running_ = false;
  std::vector<Token> tokens_;
  std::vector<Span> spans_;
  std::vector<std::size_t> positions_;
};

std::size_t CpuOps::weight_bytes() const {
  std::size_t sum = 0;
  for (const CpuLinear& linear : linears_) {
    sum += linear.bytes();
  }
  for (const std::vector<float>& vector : vectors_) {
    sum += vector.size() * sizeof(float);
  }
  return sum;
}

Result<LinearId> CpuOps::add_linear(
    std::span<const MatrixSource> parts, std::span<const float> bias
) {
  Result<CpuLinear> packed = CpuLinear::pack(parts, bias, pool_, memory_);
  if (!packed.ok()) {
    return packed.error();
  }
  linears_.push_back(std::move(*packed));
  return LinearId{static_cast<int>(linears_.size()) - 1};
}

VectorId CpuOps::add_vector(std::span<const float> values) {
  vectors_.emplace_back(values.begin(), values.end());
  return {static_cast<int>(vectors_.size()) - 1};
}

void CpuOps::begin(const Batch& batch) {
  CHECK(!running_, "a step begins inside another");
  running_ = true;
  tokens_.assign(batch.tokens.begin(), batch.tokens.end());
  spans_.assign(batch.spans.begin(), batch.spans.end());
  positions_.clear();
  for (const Span& span : spans_) {
    CHECK(span.row == positions_.size() && span.kv != nullptr);
    auto& kv = static_cast<CpuKv&>(*span.kv);
    kv.prepare(span.count);
    for (std::size_t i = 0; i < span.count; ++i) {
      positions_.push_back(kv.length() + i);
    }
  }
  CHECK(positions_.size() == tokens_.size(), "spans do not cover the batch");
  ropes_.begin(positions_);
}

Value CpuOps::embed(LinearId table, float scale) {
  const CpuLinear& weight = linears_[table.index];
  Value out = make(weight.cols());
  for_tokens([&](std::size_t t) {
    float* x = row(out, t);
    weight.decode_row(static_cast<std::size_t>(tokens_[t]), x);
    if (scale != 1) {
      for (std::size_t i = 0; i < weight.cols(); ++i) {
        x[i] *= scale;
      }
    }
  });
  return out;
}

Value CpuOps::linear(const Value& x, LinearId weight) {
  const CpuLinear& w = linears_[weight.index];
  CHECK(x.width() == w.cols());
  Value out = make(w.rows());
  run_linear(
      [&](std::size_t t) { return row(x, t); },
      tokens_.size(),
      w,
      mode_,
      row(out, 0)
  );
  return out;
}

Value CpuOps::rms_norm(const Value& x, VectorId weight, float eps) {
  const std::vector<float>& w = vectors_[weight.index];
  CHECK(w.size() == x.width());
  Value out = make(x.width());
  for_tokens([&](std::size_t t) {
    kernels_.rms_norm(row(x, t), w.data(), eps, x.width(), row(out, t));
  });
  return out;
}

Value CpuOps::attend(Value qkv, const Attention& a) {
  CHECK(qkv.width() == (a.heads + 2 * a.kv_heads) * a.head_dim);
  CHECK(!a.sinks || vectors_[a.sinks.index].size() == a.heads);
  Value out = make(a.heads * a.head_dim);
  AttentionInput input{
      .attention = &a,
      .spans = spans_,
      .qkv = row(qkv, 0),
      .tokens = tokens_.size(),
      .cosine = nullptr,
      .sine = nullptr,
      .pairs = 0,
      .q_norm = vector_or_null(a.q_norm),
      .k_norm = vector_or_null(a.k_norm),
      .sinks = vector_or_null(a.sinks),
      .out = row(out, 0),
  };
  if (a.rope != nullptr) {
    const RopeTables::Table& table = ropes_.table(*a.rope);
    input.cosine = table.cosine;
    input.sine = table.sine;
    input.pairs = a.rope->inv_freq.size();
    CHECK(2 * input.pairs <= a.head_dim);
  }
  attention_.run(input);
  return out;
}

Value CpuOps::gated_mlp(
    const Value& x, LinearId gate_up, LinearId down, GateFunction function
) {
  const CpuLinear& d = linears_[down.index];
  std::size_t inner = d.cols();
  Value both = linear(x, gate_up);
  CHECK(both.width() == 2 * inner);
  auto gate =
      function == GateFunction::kSilu ? kernels_.gate_silu : kernels_.gate_gelu;
  Value out = make(d.rows());
  run_linear(
      [&](std::size_t t) {
        float* g = row(both, t);
        gate(g, g + inner, inner, g);
        return g;
      },
      tokens_.size(),
      d,
      mode_,
      row(out, 0)
  );
  return out;
}

void CpuOps::add(Value& x, const Value& y) {
  CHECK(x.width() == y.width());
  for_tokens([&](std::size_t t) {
    kernels_.add(row(x, t), row(y, t), x.width());
  });
}

void CpuOps::logits(
    const Value& x,
    LinearId head,
    std::span<const std::size_t> rows,
    float softcap,
    std::span<float> out
) {
  const CpuLinear& w = linears_[head.index];
  CHECK(x.width() == w.cols() && out.size() == rows.size() * w.rows());
  // Half of what 8 bits lose would be lost here, where 15 cost next to
  // nothing: the layer waits for its weights.
  Activations mode = mode_ == Activations::kInt8 ? Activations::kInt16 : mode_;
  run_linear(
      [&](std::size_t i) { return row(x, rows[i]); },
      rows.size(),
      w,
      mode,
      out.data()
  );
  if (softcap != 0) {
    pool_.run(rows.size(), [&](std::size_t i, int) {
      kernels_.softcap(out.data() + i * w.rows(), w.rows(), softcap);
    });
  }
}

Status CpuOps::end(bool commit) {
  CHECK(running_, "the end of no step");
  CHECK(arena_.all_released(), "a value outlives its step");
  running_ = false;
  if (commit) {
    for (const Span& span : spans_) {
      static_cast<CpuKv&>(*span.kv).grow(span.count);
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Ops>> make_cpu_ops(ThreadPool& pool, Activations mode) {
  Result<const Kernels*> kernels = select_kernels();
  if (!kernels.ok()) return kernels.error();
  return make_cpu_ops(pool, mode, **kernels);
}

std::unique_ptr<Ops> make_cpu_ops(
    ThreadPool& pool, Activations mode, const Kernels& kernels
) {
  return std::make_unique<CpuOps>(pool, mode, kernels);
}

}  // namespace afterglow
