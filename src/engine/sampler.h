#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/token.h"
#include "engine/request.h"
#include "kernels/dispatch/kernel_table.h"

namespace afterglow {

/// Chooses tokens from logits as mlx_lm.sample_utils does: penalties and bias
/// change the logits, then top-p, min-p, XTC and top-k narrow the choice, in
/// this order, then one draw at the temperature decides. The vocabulary is
/// never sorted: filters look at the few tokens near the most likely one.
/// Thread: one thread at a time.
class Sampler {
 public:
  /// Requires: params are valid; select_kernels() succeeds.
  explicit Sampler(SamplingParams params);

  /// Changes the logits by bias and penalties. `history` is prompt and answer
  /// so far. Shape: logits [vocab].
  void process(std::span<float> logits, std::span<const Token> history) const;

  /// The next token, which will stand at `position`. Equal logits: the lowest
  /// id when greedy. Shape: logits [vocab], processed.
  Token sample(std::span<const float> logits, std::uint64_t position);

 private:
  struct Candidate {
    Token token;
    float depth;  // its logit, less the largest of all: at most 0
  };

  void gather(std::span<const float> logits, float largest, double wanted_mass);
  bool all_that_matter(double reach, double wanted_mass) const;
  void keep_top_p(double wanted_mass);
  void keep_min_p();
  void exclude_top_choices(std::uint64_t position);
  void keep_top_k();
  Token draw(std::uint64_t position);

  SamplingParams params_;
  std::uint64_t seed_;
  const Kernels& kernels_;
  std::vector<Candidate> candidates_;  // of the current draw
  std::vector<float> weights_;         // theirs
};

/// log(sum(exp(logits))). Requires: as Sampler.
double log_sum_exp(std::span<const float> logits);

/// The n most likely tokens, most likely first, with log-probabilities.
std::vector<TokenLogprob> top_logprobs(
    std::span<const float> logits, double log_sum, std::size_t n
);

}  // namespace afterglow
