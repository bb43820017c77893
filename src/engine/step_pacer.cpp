#include "engine/step_pacer.h"

#include <algorithm>

namespace afterglow {

std::size_t StepPacer::budget() const {
  if (seconds_per_token_ == 0) {
    return limits_.min_tokens;
  }
  double tokens = limits_.seconds / seconds_per_token_;
  return std::clamp(
      static_cast<std::size_t>(std::min(tokens, 1e9)),
      limits_.min_tokens,
      limits_.max_tokens
  );
}

void StepPacer::record(std::size_t tokens, double seconds) {
  // Steps of a few tokens are bound by reading weights and say nothing of
  // the time a prompt token costs.
  if (tokens < limits_.min_tokens) {
    return;
  }
  double sample = seconds / static_cast<double>(tokens);
  seconds_per_token_ = seconds_per_token_ == 0
                           ? sample
                           : 0.75 * seconds_per_token_ + 0.25 * sample;
}

}  // namespace afterglow
