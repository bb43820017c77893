#include <array>
#include <optional>
#include <string_view>

#include "model/weights.h"

namespace afterglow {
namespace {

struct Name {
  std::string_view gguf;
  std::string_view hf;
};

constexpr std::array kModelNames = {
    Name{"token_embd", "model.embed_tokens"},
    Name{"output_norm", "model.norm"},
    Name{"output", "lm_head"},
};

// Within "blk.N." and "model.layers.N.".
constexpr std::array kLayerNames = {
    Name{"attn_norm", "input_layernorm"},
    Name{"attn_q", "self_attn.q_proj"},
    Name{"attn_k", "self_attn.k_proj"},
    Name{"attn_v", "self_attn.v_proj"},
    Name{"attn_output", "self_attn.o_proj"},
    Name{"ffn_norm", "post_attention_layernorm"},
    Name{"ffn_gate", "mlp.gate_proj"},
    Name{"ffn_up", "mlp.up_proj"},
    Name{"ffn_down", "mlp.down_proj"},
};

template <class Names>
std::optional<std::string> lookup(const Names& names, std::string_view gguf) {
  for (const Name& name : names) {
    if (name.gguf == gguf) {
      return std::string(name.hf);
    }
  }
  return std::nullopt;
}

// "blk.3.attn_q.weight" to "model.layers.3.self_attn.q_proj.weight".
std::optional<std::string> hf_name(std::string_view gguf) {
  const std::size_t dot = gguf.rfind('.');
  if (dot == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string suffix(gguf.substr(dot));
  const std::string_view stem = gguf.substr(0, dot);
  if (suffix != ".weight" && suffix != ".bias") {
    return std::nullopt;
  }
  if (!stem.starts_with("blk.")) {
    const auto name = lookup(kModelNames, stem);
    return name ? std::optional(*name + suffix) : std::nullopt;
  }
  const std::string_view rest = stem.substr(4);
  const std::size_t end = rest.find('.');
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  const auto name = lookup(kLayerNames, rest.substr(end + 1));
  if (!name) {
    return std::nullopt;
  }
  return "model.layers." + std::string(rest.substr(0, end)) + "." + *name +
         suffix;
}

bool is_rotated(const std::string& hf) {
  return hf.find("self_attn.q_proj.") != std::string::npos ||
         hf.find("self_attn.k_proj.") != std::string::npos;
}

}  // namespace

Result<Weights> Weights::from_gguf(
    const Gguf& gguf, const ModelConfig& config, const std::string& where
) {
  Weights weights;
  weights.where_ = where;
  for (const RawTensor& tensor : gguf.tensors) {
    Entry entry{tensor, {}};
    if (tensor.name == "rope_freqs.weight") {
      entry.used = true;  // by the config
      weights.entries_.emplace(tensor.name, std::move(entry));
      continue;
    }
    const auto name = hf_name(tensor.name);
    if (!name) {
      return Error{
          Code::kUnsupported,
          where + ": tensor '" + tensor.name +
              "' has no place in this architecture; results without it would "
              "be wrong"};
    }
    if (is_rotated(*name)) {
      if (tensor.shape[0] % config.head_dim != 0) {
        return Error{
            Code::kCorrupt,
            where + ": tensor '" + tensor.name + "' of shape " +
                describe_shape(tensor.shape) + " has no whole heads of " +
                std::to_string(config.head_dim)};
      }
      entry.order.rope_head_dim = config.head_dim;
    }
    weights.entries_.emplace(*name, std::move(entry));
  }
  return weights;
}

}  // namespace afterglow
