#pragma once

#include <algorithm>
#include <cstddef>

namespace afterglow {

/// Sizes steps by time: enough tokens to keep the cores busy, few enough that
/// nobody waits long for the step to end. How a prompt is cut into steps
/// never changes its KV.
class StepPacer {
 public:
  struct Limits {
    double seconds = 0.1;
    std::size_t min_tokens = 32;   // fewer leave cores idle
    std::size_t max_tokens = 128;  // goes before min_tokens
  };

  explicit StepPacer(Limits limits) : limits_(limits) {
    limits_.min_tokens = std::min(limits_.min_tokens, limits_.max_tokens);
  }

  /// Prompt tokens the next step should read beside so many others.
  std::size_t budget(std::size_t others = 0) const;
  /// What a step should read at least for the cores to be busy.
  std::size_t least() const { return limits_.min_tokens; }
  /// A step of that many tokens, some of them of prompts, took so long.
  void record(std::size_t tokens, std::size_t prompt_tokens, double seconds);

  /// What a prompt token costs, smoothed over steps that read prompts; 0:
  /// nothing measured yet.
  double prefill_seconds_per_token() const {
    return prefill_seconds_per_token_;
  }

 private:
  Limits limits_;
  double seconds_per_token_ = 0;  // of all steps; 0: nothing measured yet
  double prefill_seconds_per_token_ = 0;
};

}  // namespace afterglow
