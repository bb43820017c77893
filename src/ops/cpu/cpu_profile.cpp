#include "ops/cpu/cpu_profile.h"

#include <cstdlib>

#include "kernels/dispatch/dispatch.h"

namespace afterglow {
Result<std::unique_ptr<Ops>> make_profiled_cpu_ops(
    ThreadPool& pool, Activations mode
) {
  Result<const Kernels*> kernels = select_kernels();
  if (!kernels.ok()) return kernels.error();
  return make_cpu_ops(pool, mode, profiled(**kernels));
}

Result<std::vector<CpuTarget>> cpu_targets() {
  Result<const Kernels*> used = select_kernels();
  if (!used.ok()) return used.error();
  const char* forced = std::getenv("AFTERGLOW_TARGET");
  const bool is_forced = forced != nullptr && *forced != 0;
  std::vector<CpuTarget> targets;
  for (const Target& known : all_targets()) {
    CpuTarget target{.name = known.kernels->name, .runs_here = known.runs_here};
    for (const char* name : missing_features(known)) {
      target.missing.push_back(name);
    }
    target.used = known.kernels == *used;
    target.forced = target.used && is_forced;
    targets.push_back(std::move(target));
  }
  return targets;
}

}  // namespace afterglow
