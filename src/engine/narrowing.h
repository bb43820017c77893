#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "afterglow/sampling.h"
#include "base/token.h"
#include "kernels/dispatch/kernel_table.h"

namespace afterglow {

/// A token that may be drawn: at temperature T its weight is e^(depth / T).
struct Candidate {
  Token token = 0;
  float depth = 0;  // its logit, less the largest of all: at most 0
};

/// Which tokens a draw may choose: top-p, min-p, XTC and top-k, in this order,
/// each looking at what the one before has left, as mlx_lm.sample_utils'
/// make_sampler has it. The vocabulary is never sorted: filters look at the
/// few tokens near the most likely one.
/// Thread: one thread at a time.
class Narrowing {
 public:
  /// Requires: params are valid; select_kernels() succeeds.
  explicit Narrowing(const SamplingParams& params);

  /// The candidates, in no order, valid until the next call; never none. Of
  /// equal logits where top-k ends the lowest ids stay.
  /// strike: whether XTC acts this time, which is up to chance.
  /// Shape: logits [vocab]. A token of -infinity or NaN is no candidate.
  /// Requires: some logit is above -infinity.
  std::span<const Candidate> narrow(std::span<const float> logits, bool strike);

 private:
  void gather(std::span<const float> logits, float largest, double wanted_mass);
  bool all_that_matter(double reach, double wanted_mass) const;
  void keep_top_p(double wanted_mass);
  void keep_min_p();
  void exclude_top_choices();
  void keep_top_k();

  double top_p_;
  double min_p_;
  std::size_t min_tokens_to_keep_;
  std::size_t top_k_;
  bool xtc_;
  double xtc_threshold_;
  std::vector<Token> xtc_special_tokens_;
  const Kernels& kernels_;
  std::vector<Candidate> candidates_;
};

}  // namespace afterglow
