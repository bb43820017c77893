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
  double temperature = 0;  ///< 0: the most likely token
  double top_p = 1;        ///< the most likely tokens of that probability
  std::size_t top_k = 0;   ///< so many of the most likely
  double min_p = 0;        ///< at least so likely, of the most likely
  std::size_t min_tokens_to_keep = 1;  ///< of min_p
  double xtc_probability = 0;          ///< how often XTC is applied
  double xtc_threshold = 0.1;          ///< tokens above it go but for the last
  std::vector<Token> xtc_special_tokens;     ///< never excluded by XTC
  double repetition_penalty = 0;             ///< logits are divided by it
  std::size_t repetition_context_size = 20;  ///< last tokens; 0: all
  double presence_penalty = 0;               ///< subtracted once
  std::size_t presence_context_size = 20;    ///< last tokens; 0: all
  double frequency_penalty = 0;              ///< subtracted for each occurrence
  std::size_t frequency_context_size = 20;   ///< last tokens; 0: all
  std::vector<std::pair<Token, float>> logit_bias;  ///< added to logits
  /// Draws depend on (seed, absolute position) only. None: a random seed.
  std::optional<std::uint64_t> seed;
};

}  // namespace afterglow
