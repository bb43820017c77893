#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/profile/profile.h"
#include "ops/cpu/cpu_ops.h"

namespace afterglow {

/// As make_cpu_ops(pool, mode), with the time of each kernel counted: see
/// kernel_times(). For measuring, one at a time.
Result<std::unique_ptr<Ops>> make_profiled_cpu_ops(
    ThreadPool& pool, Activations mode
);

/// An instruction set that this program has kernels for.
struct CpuTarget {
  std::string name;
  bool runs_here = false;
  std::vector<std::string> missing;  // extensions, where it does not
  bool used = false;
  bool forced = false;  // by AFTERGLOW_TARGET; else as the fastest
};

/// Slowest first. Errors: those of select_kernels().
Result<std::vector<CpuTarget>> cpu_targets();

}  // namespace afterglow
