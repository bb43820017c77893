#pragma once

#include <cstdint>
#include <vector>

#include "kernels/dispatch/kernel_table.h"

namespace afterglow {

/// What a kernel did, summed over all threads.
struct KernelTime {
  const char* name;
  std::uint64_t calls = 0;
  double seconds = 0;
  /// Of the linear layers and attention: memory of weights or KV that the
  /// calls read, and floating-point operations (a multiply-add is two).
  double bytes = 0;
  double flops = 0;
};

/// A table whose kernels are those of `real` with their time counted: a few
/// per cent slower, of the same bits. A process has one set of counters, so a
/// second call makes all such tables count for its `real`.
/// Thread: not while kernels of such a table run. The table lives for ever.
const Kernels& profiled(const Kernels& real);

/// Kernels that were called since the start or the last reset, in the order
/// of the table. Thread: any; exact when no kernel runs.
std::vector<KernelTime> kernel_times();
void reset_kernel_times();

/// What one call costs besides its kernel, in seconds; outside of what
/// kernel_times() counts. Measured at each call, which takes a millisecond.
double profiling_cost();

}  // namespace afterglow
