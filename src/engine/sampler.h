#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/token.h"
#include "engine/narrowing.h"
#include "engine/request.h"
#include "kernels/dispatch/kernel_table.h"

namespace afterglow {

/// Chooses tokens from logits as mlx_lm.sample_utils does: bias and penalties
/// change the logits, filters narrow the choice (see Narrowing), then one draw
/// at the temperature decides.
/// Thread: one thread at a time.
class Sampler {
 public:
  /// Requires: params are valid; select_kernels() succeeds.
  explicit Sampler(SamplingParams params);

  /// Changes the logits by bias and penalties. What is finite stays so.
  /// `history` is prompt and answer so far; a kUnknownToken in it counts for
  /// nothing. Shape: logits [vocab].
  void process(std::span<float> logits, std::span<const Token> history) const;

  /// The next token, which will stand at `position`. Equal logits: the lowest
  /// id when greedy. Shape: logits [vocab], processed.
  /// Requires: some logit is above -infinity.
  Token sample(std::span<const float> logits, std::uint64_t position);

 private:
  Token draw(std::span<const Candidate> candidates, std::uint64_t position);

  SamplingParams params_;
  std::uint64_t seed_;
  const Kernels& kernels_;
  Narrowing narrowing_;
  std::vector<float> weights_;  // of the current draw
};

/// log(sum(exp(logits))). Requires: as Sampler.
double log_sum_exp(std::span<const float> logits);

/// The n most likely tokens, most likely first, with log-probabilities.
std::vector<TokenLogprob> top_logprobs(
    std::span<const float> logits, double log_sum, std::size_t n
);

}  // namespace afterglow
