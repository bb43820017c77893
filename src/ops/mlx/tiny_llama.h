#pragma once

#include <span>
#include <vector>

#include "base/check.h"
#include "ops/mlx/mlx_test_support.h"

namespace afterglow::mlx_test {

/// A network of llama's shape with random weights, small enough to be
/// computed by plain loops.
class TinyLlama {
 public:
  static constexpr std::size_t kVocab = 50, kHidden = 64, kHeads = 4,
                               kKvHeads = 2, kDim = 16, kInner = 96,
                               kLayers = 2;
  static constexpr float kEps = 1e-5F;

  explicit TinyLlama(Dice& dice, const Format& format) {
    const float small = 0.1F;
    table_ = random_matrix(kVocab, kHidden, format, dice);
    for (Layer& layer : layers_) {
      layer.attention_norm = random_vector(kHidden, dice);
      layer.mlp_norm = random_vector(kHidden, dice);
      layer.q = random_matrix(kHeads * kDim, kHidden, format, dice, small);
      layer.k = random_matrix(kKvHeads * kDim, kHidden, format, dice, small);
      layer.v = random_matrix(kKvHeads * kDim, kHidden, format, dice, small);
      layer.o = random_matrix(kHidden, kHeads * kDim, format, dice, small);
      layer.gate = random_matrix(kInner, kHidden, format, dice, small);
      layer.up = random_matrix(kInner, kHidden, format, dice, small);
      layer.down = random_matrix(kHidden, kInner, format, dice, small);
    }
    norm_ = random_vector(kHidden, dice);
    rope_ = {plain_frequencies(kDim / 2), 1, false};
  }

  static KvLayout layout(KvType type) {
    KvLayout layout;
    layout.layers.assign(kLayers, {kKvHeads, kDim, kDim, type, 0});
    return layout;
  }

  /// Gives the weights to a backend, which must outlive calls of step().
  void load(Ops& ops) {
    ops_ = &ops;
    const auto add = [&](std::vector<MatrixSource> parts) {
      auto id = ops.add_linear(parts, {});
      CHECK(id.ok(), id.error().message);
      return *id;
    };
    table_id_ = add({table_.source});
    norm_id_ = ops.add_vector(norm_);
    for (Layer& layer : layers_) {
      layer.attention_norm_id = ops.add_vector(layer.attention_norm);
      layer.mlp_norm_id = ops.add_vector(layer.mlp_norm);
      layer.qkv_id = add({layer.q.source, layer.k.source, layer.v.source});
      layer.o_id = add({layer.o.source});
      layer.gate_up_id = add({layer.gate.source, layer.up.source});
      layer.down_id = add({layer.down.source});
    }
  }

  /// One sequence's share of a step.
  struct Part {
    KvState* kv;
    std::vector<Token> tokens;
  };

  /// Runs a ragged step; returns each part's logits, [tokens][kVocab].
  std::vector<std::vector<float>> step(std::span<const Part> parts) {
    std::vector<Token> tokens;
    std::vector<Span> spans;
    for (const Part& part : parts) {
      spans.push_back({tokens.size(), part.tokens.size(), part.kv});
      tokens.insert(tokens.end(), part.tokens.begin(), part.tokens.end());
    }
    Batch batch;
    batch.tokens = tokens;
    batch.spans = spans;
    std::vector<std::size_t> rows(tokens.size());
    std::iota(rows.begin(), rows.end(), 0);
    std::vector<float> logits(tokens.size() * kVocab);
    ops_->begin(batch);
    { ops_->logits(forward(), table_id_, rows, 0, logits); }
    const Status status = ops_->end(true);
    CHECK(status.ok(), status.error().message);
    std::vector<std::vector<float>> out;
    for (const Span& span : spans) {
      const auto first = logits.begin() + std::ptrdiff_t(span.row * kVocab);
      out.emplace_back(first, first + std::ptrdiff_t(span.count * kVocab));
    }
    return out;
  }

  std::vector<float> step(KvState& kv, std::vector<Token> tokens) {
    const Part part{&kv, std::move(tokens)};
    return step({&part, 1}).front();
  }

  /// The logits of all tokens by plain loops, [tokens][kVocab].
  Row naive(std::span<const Token> tokens) const {
    Matrix x;
    for (Token token : tokens) {
      x.push_back(table_.values[static_cast<std::size_t>(token)]);
    }
    const auto normed = [&](const std::vector<float>& weight) {
      Matrix y = x;
      for (Row& row : y) {
        naive_rms_norm(row, weight, kEps);
      }
      return y;
    };
    const auto add = [&](std::size_t t, const Row& y) {
      for (std::size_t i = 0; i < y.size(); ++i) {
        x[t][i] += y[i];
      }
    };
    for (std::size_t l = 0; l < kLayers; ++l) {
      const Layer& layer = layers_[l];
      Matrix qkv = normed(layer.attention_norm);
      for (Row& row : qkv) {
        Row joint = naive_linear(row, layer.q.values);
        for (const TestMatrix* part : {&layer.k, &layer.v}) {
          const Row more = naive_linear(row, part->values);
          joint.insert(joint.end(), more.begin(), more.end());
        }
        row = joint;
      }
      const Matrix mixed = naive_attend(qkv, attention(l), {}, {}, {});
      for (std::size_t t = 0; t < x.size(); ++t) {
        add(t, naive_linear(mixed[t], layer.o.values));
      }
      Matrix gate_up = layer.gate.values;
      gate_up.insert(
          gate_up.end(), layer.up.values.begin(), layer.up.values.end()
      );
      const Matrix y = normed(layer.mlp_norm);
      for (std::size_t t = 0; t < x.size(); ++t) {
        add(t,
            naive_mlp(y[t], gate_up, layer.down.values, GateFunction::kSilu));
      }
    }
    Row logits;
    for (const Row& row : normed(norm_)) {
      const Row y = naive_linear(row, table_.values);
      logits.insert(logits.end(), y.begin(), y.end());
    }
    return logits;
  }

 private:
  struct Layer {
    std::vector<float> attention_norm, mlp_norm;
    TestMatrix q, k, v, o, gate, up, down;
    VectorId attention_norm_id, mlp_norm_id;
    LinearId qkv_id, o_id, gate_up_id, down_id;
  };

  Attention attention(std::size_t layer) const {
    Attention attention;
    attention.layer = layer;
    attention.heads = kHeads;
    attention.kv_heads = kKvHeads;
    attention.head_dim = kDim;
    attention.scale = 0.25F;
    attention.rope = &rope_;
    return attention;
  }

  Value forward() {
    Value x = ops_->embed(table_id_, 1);
    for (std::size_t l = 0; l < kLayers; ++l) {
      const Layer& layer = layers_[l];
      Value y = ops_->rms_norm(x, layer.attention_norm_id, kEps);
      y = ops_->linear(y, layer.qkv_id);
      y = ops_->attend(std::move(y), attention(l));
      y = ops_->linear(y, layer.o_id);
      ops_->add(x, y);
      y = ops_->rms_norm(x, layer.mlp_norm_id, kEps);
      y = ops_->gated_mlp(
          y, layer.gate_up_id, layer.down_id, GateFunction::kSilu
      );
      ops_->add(x, y);
    }
    return ops_->rms_norm(x, norm_id_, kEps);
  }

  Ops* ops_ = nullptr;
  TestMatrix table_;
  std::vector<Layer> layers_{kLayers};
  std::vector<float> norm_;
  Rope rope_;
  LinearId table_id_;
  VectorId norm_id_;
};

inline std::vector<Token> random_tokens(std::size_t n, Dice& dice) {
  std::vector<Token> tokens(n);
  for (Token& token : tokens) {
    token = dice.below(TinyLlama::kVocab);
  }
  return tokens;
}

}  // namespace afterglow::mlx_test
