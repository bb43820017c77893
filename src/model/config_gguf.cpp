#include <cstring>

#include "model/architectures/registry.h"
#include "model/config.h"
#include "model/config_check.h"
#include "model/rope.h"

namespace afterglow {
namespace {

const RawTensor* find_tensor(const Gguf& gguf, const std::string& name) {
  for (const RawTensor& tensor : gguf.tensors) {
    if (tensor.name == name) {
      return &tensor;
    }
  }
  return nullptr;
}

// Keys that change the forward pass, unless they have the neutral value.
void check_neutral(GgufFields& fields, const std::string& prefix) {
  struct Neutral {
    const char* key;
    double value;
  };
  constexpr Neutral kKeys[] = {
      {"expert_count", 0},
      {"attention.sliding_window", 0},
      {"attention.clamp_kqv", 0},
      {"attention.max_alibi_bias", 0},
      {"attention.scale", 0},
      {"attn_logit_softcapping", 0},
      {"final_logit_softcapping", 0},
      {"logit_scale", 1},
      {"embedding_scale", 1},
      {"residual_scale", 1},
      {"rope.scaling.attn_factor", 1},
  };
  for (const Neutral& neutral : kKeys) {
    const std::string key = prefix + neutral.key;
    const double value = fields.number(key, neutral.value);
    if (value != neutral.value) {
      fields.fail(
          Code::kUnsupported,
          key,
          "= " + std::to_string(value) + " is not supported"
      );
    }
  }
  struct Flag {
    const char* key;
    bool value;
  };
  constexpr Flag kFlags[] = {
      {"attention.causal", true}, {"use_parallel_residual", false}};
  for (const Flag& flag : kFlags) {
    if (fields.boolean(prefix + flag.key).value_or(flag.value) != flag.value) {
      fields.fail(
          Code::kUnsupported,
          prefix + flag.key,
          flag.value ? "= false is not supported" : "= true is not supported"
      );
    }
  }
}

double positive(GgufFields& fields, const std::string& key, double fallback) {
  const double value = fields.number(key, fallback);
  if (!(value > 0)) {
    fields.fail(Code::kCorrupt, key, "must be positive");
    return 1;
  }
  return value;
}

// Llama 3.1 files carry what each frequency is divided by as a tensor.
Status apply_factors(
    const RawTensor& factors, Rope& rope, const std::string& where
) {
  const auto bad = [&](const std::string& why) {
    return Error{
        Code::kCorrupt, where + ": tensor '" + factors.name + "' " + why};
  };
  if (factors.dtype != "F32" || factors.shape.size() != 1 ||
      factors.shape[0] != rope.inv_freq.size()) {
    return bad(
        "is " + factors.dtype + " " + describe_shape(factors.shape) +
        ", wants F32 [" + std::to_string(rope.inv_freq.size()) + "]"
    );
  }
  for (std::size_t i = 0; i < rope.inv_freq.size(); ++i) {
    float factor = 0;
    std::memcpy(&factor, factors.bytes.data() + 4 * i, 4);
    if (!(factor > 0)) {
      return bad("holds a factor that is not positive");
    }
    rope.inv_freq[i] /= factor;
  }
  return {};
}

Rope read_rope(
    GgufFields& fields, const std::string& prefix, const ModelConfig& config
) {
  const std::size_t turned =
      fields.count(prefix + "rope.dimension_count", config.head_dim);
  if (turned != config.head_dim) {
    fields.fail(
        Code::kUnsupported,
        prefix + "rope.dimension_count",
        "= " + std::to_string(turned) + " turns only a part of the head size " +
            std::to_string(config.head_dim)
    );
  }
  const double base = positive(fields, prefix + "rope.freq_base", 10000);
  const std::string key = prefix + "rope.scaling.type";
  const double old_factor = fields.number(prefix + "rope.scale_linear", 0);
  const std::string kind =
      fields.text(key, old_factor != 0 ? "linear" : "none");
  if (kind == "none") {
    return plain_rope(config.head_dim, base);
  }
  if (kind == "linear") {
    const double factor = positive(
        fields, prefix + "rope.scaling.factor", old_factor != 0 ? old_factor : 1
    );
    return linear_rope(config.head_dim, base, factor);
  }
  fields.fail(
      Code::kUnsupported,
      key,
      "= '" + kind + "' is not supported; known: none, linear"
  );
  return plain_rope(config.head_dim, base);
}

void read_sizes(
    GgufFields& fields,
    const Gguf& gguf,
    const std::string& prefix,
    ModelConfig& config
) {
  config.layers = fields.count(prefix + "block_count");
  config.hidden = fields.count(prefix + "embedding_length");
  config.intermediate = fields.count(prefix + "feed_forward_length");
  config.heads = fields.count(prefix + "attention.head_count");
  config.kv_heads =
      fields.count(prefix + "attention.head_count_kv", config.heads);
  const std::string key_length = prefix + "attention.key_length";
  const std::string value_length = prefix + "attention.value_length";
  config.head_dim = fields.count(
      key_length, std::max<std::size_t>(config.hidden / config.heads, 1)
  );
  if (fields.count(value_length, config.head_dim) != config.head_dim) {
    fields.fail(Code::kUnsupported, value_length, "differs from key_length");
  }
  config.context_length = fields.count(prefix + "context_length");
  config.norm_eps = static_cast<float>(
      fields.number(prefix + "attention.layer_norm_rms_epsilon")
  );
  const RawTensor* embedding = find_tensor(gguf, "token_embd.weight");
  if (embedding != nullptr) {
    config.vocab_size = embedding->shape[0];
  }
}

}  // namespace

Result<ModelConfig> config_from_gguf(
    const Gguf& gguf, const std::string& where
) {
  GgufFields fields(gguf, where);
  const std::string name = fields.text("general.architecture");
  if (!fields.status()) {
    return fields.status().error();
  }
  const auto architecture = architecture_for(name);
  if (!architecture) {
    return Error{
        architecture.error().code, where + ": " + architecture.error().message};
  }
  const std::string prefix = name + ".";
  ModelConfig config;
  config.architecture = *architecture;
  read_sizes(fields, gguf, prefix, config);
  if (config.vocab_size == 0) {
    return Error{
        Code::kCorrupt, where + ": tensor 'token_embd.weight' is missing"};
  }
  config.tied_embedding = find_tensor(gguf, "output.weight") == nullptr;
  config.qkv_bias = find_tensor(gguf, "blk.0.attn_q.bias") != nullptr;
  config.output_bias = find_tensor(gguf, "blk.0.attn_output.bias") != nullptr;
  config.mlp_bias = find_tensor(gguf, "blk.0.ffn_down.bias") != nullptr;
  check_neutral(fields, prefix);
  config.rope = read_rope(fields, prefix, config);
  if (!fields.status()) {
    return fields.status().error();
  }
  if (Status status = check_config(config, where); !status) {
    return status.error();
  }
  if (const RawTensor* factors = find_tensor(gguf, "rope_freqs.weight")) {
    if (Status status = apply_factors(*factors, config.rope, where); !status) {
      return status.error();
    }
  }
  return config;
}

}  // namespace afterglow
