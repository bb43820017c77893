#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <vector>

#include "kernels/testing/matrix.h"
#include "ops/cpu/cpu_ops.h"

namespace afterglow::test {

/// A random transformer of two layers, written in Ops as an architecture is:
/// grouped heads, q and k norms, a sliding window in its second layer.
class TinyModel {
 public:
  static constexpr std::size_t kVocab = 61;
  static constexpr std::size_t kHidden = 64;
  static constexpr std::size_t kHeads = 6;
  static constexpr std::size_t kKvHeads = 2;
  static constexpr std::size_t kDim = 32;
  static constexpr std::size_t kInner = 160;
  static constexpr std::size_t kLayers = 2;
  static constexpr std::uint32_t kWindow = 70;

  TinyModel(ThreadPool& pool, Activations mode, const Kernels& kernels)
      : ops_(make_cpu_ops(pool, mode, kernels)) {
    Random random(11);
    Format four{"", ElementType::kF16, 4, 32, false, true};
    Format eight{"", ElementType::kF16, 8, 64, true, false};
    Format dense{"", ElementType::kBF16, 0, 0, false, false};
    embedding_ = linear({eight}, {kVocab}, kHidden, random);
    for (Layer& layer : layers_) {
      // Three formats in one joint projection.
      layer.qkv = linear(
          {four, dense, eight},
          {kHeads * kDim, kKvHeads * kDim, kKvHeads * kDim},
          kHidden,
          random
      );
      layer.o = linear({four}, {kHidden}, kHeads * kDim, random);
      layer.gate_up = linear({four, four}, {kInner, kInner}, kHidden, random);
      layer.down = linear({eight_by_32()}, {kHidden}, kInner, random);
      layer.norm1 = ones(kHidden, random);
      layer.norm2 = ones(kHidden, random);
    }
    head_norm_ = ones(kDim, random);
    norm_ = ones(kHidden, random);
    double frequency = 1;
    for (std::size_t i = 0; i < kDim / 2; ++i, frequency *= 0.5625) {
      rope_.inv_freq.push_back(frequency);  // exact, so of the same bits
    }
    for (std::size_t i = 0; i < kLayers; ++i) {
      layout_.layers.push_back({kKvHeads, kDim, kDim, ops_->kv_type(), 0});
    }
    pages_ = std::make_unique<PagePool>(layout_.page_bytes());
  }

  Ops& ops() { return *ops_; }
  const KvLayout& layout() const { return layout_; }
  PagePool& pages() { return *pages_; }
  std::unique_ptr<KvState> new_kv() { return ops_->new_kv(layout_, *pages_); }

  /// Logits of all tokens of a step. Shape: out [T][kVocab].
  void step_into(
      std::span<const Token> tokens,
      std::span<const Span> spans,
      std::span<float> out,
      bool commit = true
  ) {
    ops_->begin({tokens, spans, nullptr});
    {
      Value x = forward();
      rows_.resize(tokens.size());
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        rows_[i] = i;
      }
      ops_->logits(x, embedding_, rows_, 0, out);
    }
    EXPECT_TRUE(ops_->end(commit).ok());
  }

  std::vector<float> step(
      std::span<const Token> tokens,
      std::span<const Span> spans,
      bool commit = true
  ) {
    std::vector<float> out(tokens.size() * kVocab);
    step_into(tokens, spans, out, commit);
    return out;
  }

  /// One sequence's next tokens.
  std::vector<float> feed(KvState& kv, std::span<const Token> tokens) {
    Span span{0, tokens.size(), &kv};
    return step(tokens, {&span, 1});
  }

 private:
  struct Layer {
    LinearId qkv, o, gate_up, down;
    VectorId norm1, norm2;
  };

  static Format eight_by_32() {
    return {"", ElementType::kF32, 8, 32, false, true};
  }

  LinearId linear(
      const std::vector<Format>& formats,
      const std::vector<std::size_t>& rows,
      std::size_t cols,
      Random& random
  ) {
    std::vector<MatrixSource> parts;
    for (std::size_t i = 0; i < formats.size(); ++i) {
      parts.push_back(random_matrix(formats[i], rows[i], cols, random).source);
    }
    return ops_->add_linear(parts, {}).value();
  }

  VectorId ones(std::size_t n, Random& random) {
    std::vector<float> values = random.floats(n, 0.3f);
    for (float& x : values) {
      x += 1;
    }
    return ops_->add_vector(values);
  }

  Value forward() {
    Value x = ops_->embed(embedding_, 2);
    for (std::size_t i = 0; i < kLayers; ++i) {
      const Layer& layer = layers_[i];
      Attention attention{
          .layer = i,
          .heads = kHeads,
          .kv_heads = kKvHeads,
          .head_dim = kDim,
          .scale = 0.17f,
          .rope = &rope_,
          .q_norm = head_norm_,
          .k_norm = head_norm_,
          .norm_eps = 1e-6f,
          .window = i == 1 ? kWindow : 0,
          .softcap = i == 0 ? 20.0f : 0.0f,
      };
      {
        Value h = ops_->rms_norm(x, layer.norm1, 1e-5f);
        Value qkv = ops_->linear(h, layer.qkv);
        Value mixed = ops_->attend(std::move(qkv), attention);
        Value o = ops_->linear(mixed, layer.o);
        ops_->add(x, o);
      }
      Value h = ops_->rms_norm(x, layer.norm2, 1e-5f);
      Value y =
          ops_->gated_mlp(h, layer.gate_up, layer.down, GateFunction::kSilu);
      ops_->add(x, y);
    }
    return ops_->rms_norm(x, norm_, 1e-5f);
  }

  std::unique_ptr<Ops> ops_;
  LinearId embedding_;
  Layer layers_[kLayers];
  std::vector<std::size_t> rows_;
  VectorId head_norm_, norm_;
  Rope rope_;
  KvLayout layout_;
  std::unique_ptr<PagePool> pages_;
};

inline std::vector<Token> random_tokens(std::size_t n, Random& random) {
  std::vector<Token> tokens(n);
  for (Token& token : tokens) {
    token = static_cast<Token>(random.below(TinyModel::kVocab));
  }
  return tokens;
}

}  // namespace afterglow::test
