#include "engine/step_pacer.h"

#include <algorithm>

namespace afterglow {
namespace {

void smooth(double& value, double sample) {
  value = value == 0 ? sample : 0.75 * value + 0.25 * sample;
}

}  // namespace

std::size_t StepPacer::budget(std::size_t others) const {
  if (seconds_per_token_ == 0) {
    return limits_.min_tokens;
  }
  double tokens = limits_.seconds / seconds_per_token_;
  tokens -= static_cast<double>(others);
  return static_cast<std::size_t>(std::clamp(
      tokens,
      static_cast<double>(limits_.min_tokens),
      static_cast<double>(limits_.max_tokens)
  ));
}

void StepPacer::record(
    std::size_t tokens, std::size_t prompt_tokens, double seconds
) {
  // Steps of a few tokens are bound by reading weights and say nothing of
  // the time a prompt token costs.
  if (tokens < limits_.min_tokens) {
    return;
  }
  double sample = seconds / static_cast<double>(tokens);
  smooth(seconds_per_token_, sample);
  if (prompt_tokens >= limits_.min_tokens) {
    smooth(prefill_seconds_per_token_, sample);
  }
}

}  // namespace afterglow
