#pragma once

#include <cstddef>
#include <vector>

#include "ops/cpu/cpu_profile.h"

namespace afterglow {

/// Where the time of a run of steps went. Threads' time is added up: two
/// threads that run for a second have two.
struct StepProfile {
  std::size_t tokens = 0;
  double thread_seconds = 0;  // without what counting took
  std::vector<KernelTime> kernels;

  double kernel_seconds() const;
  /// The share of the threads' time in which they ran no kernel: what was
  /// between kernels, and waiting for other threads.
  double outside_share() const;
  /// Memory of weights and KV read for each token, where tokens came one by
  /// one.
  double bytes_a_token() const;
};

/// Begins to count, and says what happened since. seconds: on the clock.
void begin_profile();
StepProfile end_profile(std::size_t tokens, int threads, double seconds);

}  // namespace afterglow
