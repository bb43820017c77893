#include <cmath>

#include "model/architectures/builder.h"
#include "model/architectures/registry.h"

namespace afterglow {
namespace {

struct Layer {
  VectorId input_norm;
  LinearId qkv;
  LinearId output;
  VectorId mlp_norm;
  LinearId gate_up;
  LinearId down;
};

class Llama final : public Architecture {
 public:
  Llama(const ModelConfig& config, Builder& builder) : config_(config) {
    const std::size_t query = config.heads * config.head_dim;
    const std::size_t kv = config.kv_heads * config.head_dim;
    embedding_ = builder.linear(
        {{"model.embed_tokens", config.vocab_size}}, config.hidden, false
    );
    for (std::size_t i = 0; i < config.layers && builder.status(); ++i) {
      const std::string at = "model.layers." + std::to_string(i) + ".";
      layers_.push_back({
          .input_norm =
              builder.vector(at + "input_layernorm.weight", config.hidden),
          .qkv = builder.linear(
              {{at + "self_attn.q_proj", query},
               {at + "self_attn.k_proj", kv},
               {at + "self_attn.v_proj", kv}},
              config.hidden,
              config.qkv_bias
          ),
          .output = builder.linear(
              {{at + "self_attn.o_proj", config.hidden}},
              query,
              config.output_bias
          ),
          .mlp_norm = builder.vector(
              at + "post_attention_layernorm.weight", config.hidden
          ),
          .gate_up = builder.linear(
              {{at + "mlp.gate_proj", config.intermediate},
               {at + "mlp.up_proj", config.intermediate}},
              config.hidden,
              config.mlp_bias
          ),
          .down = builder.linear(
              {{at + "mlp.down_proj", config.hidden}},
              config.intermediate,
              config.mlp_bias
          ),
      });
    }
    norm_ = builder.vector("model.norm.weight", config.hidden);
    if (config.tied_embedding) {
      builder.ignore("lm_head.weight");
      head_ = embedding_;
    } else {
      head_ = builder.linear(
          {{"lm_head", config.vocab_size}}, config.hidden, false
      );
    }
  }

  Value forward(Ops& ops, const Batch& batch) const override {
    Attention attention{
        .heads = config_.heads,
        .kv_heads = config_.kv_heads,
        .head_dim = config_.head_dim,
        .scale = static_cast<float>(1 / std::sqrt(double(config_.head_dim))),
        .rope = &config_.rope,
    };
    Value hidden = ops.embed(embedding_, 1.0F);
    for (const Layer& layer : layers_) {
      if (batch.cancelled()) {
        break;
      }
      {
        const Value x =
            ops.rms_norm(hidden, layer.input_norm, config_.norm_eps);
        const Value context = ops.attend(ops.linear(x, layer.qkv), attention);
        ops.add(hidden, ops.linear(context, layer.output));
      }
      const Value x = ops.rms_norm(hidden, layer.mlp_norm, config_.norm_eps);
      ops.add(
          hidden,
          ops.gated_mlp(x, layer.gate_up, layer.down, GateFunction::kSilu)
      );
      ++attention.layer;
    }
    return ops.rms_norm(hidden, norm_, config_.norm_eps);
  }

  LinearId head() const override { return head_; }

 private:
  ModelConfig config_;
  LinearId embedding_;
  std::vector<Layer> layers_;
  VectorId norm_;
  LinearId head_;
};

}  // namespace

Result<std::unique_ptr<Architecture>> make_llama(
    const ModelConfig& config, Weights& weights, Ops& ops
) {
  Builder builder(weights, ops);
  auto model = std::make_unique<Llama>(config, builder);
  if (!builder.status()) {
    return builder.status().error();
  }
  return std::unique_ptr<Architecture>(std::move(model));
}

}  // namespace afterglow
