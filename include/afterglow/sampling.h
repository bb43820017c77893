#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "afterglow/types.h"

namespace afterglow {

/// How the next token is chosen; the names and meanings of
/// mlx_lm.sample_utils. A value of 0 (top_p also 1) switches a part off.
struct SamplingParams {
  double temperature = 0;  // 0: the most likely token
  double top_p = 1;
  std::size_t top_k = 0;
  double min_p = 0;
  std::size_t min_tokens_to_keep = 1;
  double xtc_probability = 0;
  double xtc_threshold = 0.1;
  std::vector<Token> xtc_special_tokens;
  double repetition_penalty = 0;
  std::size_t repetition_context_size = 20;
  double presence_penalty = 0;
  std::size_t presence_context_size = 20;
  double frequency_penalty = 0;
  std::size_t frequency_context_size = 20;
  std::vector<std::pair<Token, float>> logit_bias;
  /// Draws depend on (seed, absolute position) only. None: a random seed.
  std::optional<std::uint64_t> seed;
};

}  // namespace afterglow
