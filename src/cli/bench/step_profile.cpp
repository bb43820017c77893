#include "cli/bench/step_profile.h"

#include <algorithm>

namespace afterglow {

double StepProfile::kernel_seconds() const {
  double sum = 0;
  for (const KernelTime& kernel : kernels) sum += kernel.seconds;
  return sum;
}

double StepProfile::outside_share() const {
  return std::max(0.0, 1 - kernel_seconds() / thread_seconds);
}

double StepProfile::bytes_a_token() const {
  double sum = 0;
  for (const KernelTime& kernel : kernels) sum += kernel.bytes;
  return sum / static_cast<double>(tokens);
}

void begin_profile() {
  reset_kernel_times();
}

StepProfile end_profile(std::size_t tokens, int threads, double seconds) {
  StepProfile profile{.tokens = tokens, .kernels = kernel_times()};
  double calls = 0;
  for (const KernelTime& kernel : profile.kernels) {
    calls += static_cast<double>(kernel.calls);
  }
  profile.thread_seconds = threads * seconds - calls * profiling_cost();
  return profile;
}

}  // namespace afterglow
