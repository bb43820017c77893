#include "model/config.h"

#include "model/config_check.h"
#include "model/rope.h"

namespace afterglow {

std::string ModelConfig::describe() const {
  std::string text = architecture;
  const auto add = [&text](const char* name, std::size_t value) {
    text += std::string(" ") + name + "=" + std::to_string(value);
  };
  add("layers", layers);
  add("hidden", hidden);
  add("intermediate", intermediate);
  add("heads", heads);
  add("kv_heads", kv_heads);
  add("head_dim", head_dim);
  add("vocab", vocab_size);
  add("tied", tied_embedding);
  add("qkv_bias", qkv_bias);
  add("output_bias", output_bias);
  add("mlp_bias", mlp_bias);
  return text + " norm_eps=" + exact_text(norm_eps) + " " + describe_rope(rope);
}

Status check_config(const ModelConfig& config, const std::string& where) {
  constexpr std::size_t kMaxLayers = 1 << 14;
  constexpr std::size_t kMaxWidth = 1 << 24;
  const auto bad = [&where](const std::string& why) {
    return Error{Code::kCorrupt, where + ": " + why};
  };
  if (config.layers > kMaxLayers) {
    return bad(std::to_string(config.layers) + " layers");
  }
  for (std::size_t width :
       {config.hidden, config.intermediate, config.heads, config.head_dim}) {
    if (width > kMaxWidth) {
      return bad("a width of " + std::to_string(width));
    }
  }
  if (config.heads % config.kv_heads != 0) {
    return bad(
        std::to_string(config.heads) +
        " attention heads are not a multiple of " +
        std::to_string(config.kv_heads) + " KV heads"
    );
  }
  if (config.head_dim % 16 != 0 || config.head_dim > 512) {
    return Error{
        Code::kUnsupported,
        where + ": heads of " + std::to_string(config.head_dim) +
            "; supported are multiples of 16 up to 512"};
  }
  if (!(config.norm_eps >= 0 && config.norm_eps < 1)) {
    return bad("norm epsilon " + std::to_string(config.norm_eps));
  }
  return {};
}

}  // namespace afterglow
