#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "model/gguf.h"
#include "ops/ops.h"

namespace afterglow {

/// The numbers that, with the weights, define a model of the llama family.
struct ModelConfig {
  std::string architecture;  // the registry's name, "llama"
  std::size_t layers = 0;
  std::size_t hidden = 0;
  std::size_t intermediate = 0;
  std::size_t heads = 0;
  std::size_t kv_heads = 0;
  std::size_t head_dim = 0;
  std::size_t vocab_size = 0;
  std::size_t context_length = 0;
  float norm_eps = 0;
  Rope rope;
  bool tied_embedding = false;
  bool qkv_bias = false;
  bool output_bias = false;  // of the attention's output projection
  bool mlp_bias = false;

  /// A canonical text of all that reaches the forward pass.
  std::string describe() const;
};

/// Reads a config.json in HF or MLX layout. Missing fields get the defaults
/// of mlx_lm.
/// Errors: kCorrupt naming a missing or malformed field; kUnsupported naming
/// an unknown architecture or a field that would change the forward pass.
Result<ModelConfig> config_from_json(
    const nlohmann::json& config, const std::string& where
);

/// Reads GGUF metadata and, where metadata leaves it open, which tensors are
/// there. Errors: as config_from_json.
Result<ModelConfig> config_from_gguf(
    const Gguf& gguf, const std::string& where
);

}  // namespace afterglow
