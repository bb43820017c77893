#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/dispatch/kernel_table.h"

namespace afterglow {

/// A table of this program, and whether this machine can run it.
struct Target {
  const Kernels* kernels;
  std::span<const char* const> needs;  // names among cpu_features()
  bool runs_here;
};

/// What it needs and this machine lacks.
std::vector<const char*> missing_features(const Target& target);

/// All targets built in, "scalar" first, the fastest last.
std::span<const Target> all_targets();

/// All tables this machine can run, "scalar" first, the fastest last.
std::span<const Kernels* const> available_kernels();

/// The fastest table this machine can run, or the one that the environment
/// variable AFTERGLOW_TARGET names. Errors: kInvalidArgument for an unknown
/// name, kUnsupported for one that this machine can't run.
Result<const Kernels*> select_kernels();
/// The same by a name; empty: the fastest.
Result<const Kernels*> select_kernels(const std::string& name);

}  // namespace afterglow
