#include "kernels/dispatch/dispatch.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kernels/dispatch/cpu_features.h"

namespace afterglow {

namespace scalar {
extern const Kernels kTable;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Kernels kTable;
}
namespace avx512bw {
extern const Kernels kTable;
}
namespace avx512 {
extern const Kernels kTable;
}
#elif defined(__aarch64__)
namespace neon {
extern const Kernels kTable;
}
namespace dotprod {
extern const Kernels kTable;
}
namespace i8mm {
extern const Kernels kTable;
}
#endif

namespace {

// What the compiler may use in target_<name>.cpp (see CMakeLists.txt).
#if defined(__x86_64__)
constexpr const char* kAvx2[] = {"avx2", "fma", "f16c"};
constexpr const char* kAvx512bw[] = {
    "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl"};
constexpr const char* kAvx512[] = {
    "avx2",
    "fma",
    "f16c",
    "avx512f",
    "avx512bw",
    "avx512dq",
    "avx512vl",
    "avx512vnni"};
#elif defined(__aarch64__)
constexpr const char* kDotprod[] = {"dotprod"};
constexpr const char* kI8mm[] = {"dotprod", "i8mm"};
#endif

bool has(const char* name) {
  for (const CpuFeature& feature : cpu_features()) {
    if (std::strcmp(feature.name, name) == 0) {
      return feature.here;
    }
  }
  return false;
}

Target target(const Kernels& kernels, std::span<const char* const> needs) {
  return {&kernels, needs, std::all_of(needs.begin(), needs.end(), has)};
}

// Adds a name, behind a comma where it is not the first.
void append(std::string& names, const char* name) {
  names += (names.empty() ? "" : ", ") + std::string(name);
}

}  // namespace

std::span<const Target> all_targets() {
  static const Target targets[] = {
    target(scalar::kTable, {}),
#if defined(__x86_64__)
    target(avx2::kTable, kAvx2),
    target(avx512bw::kTable, kAvx512bw),
    target(avx512::kTable, kAvx512),
#elif defined(__aarch64__)
    target(neon::kTable, {}),
    target(dotprod::kTable, kDotprod),
    target(i8mm::kTable, kI8mm),
#endif
  };
  return targets;
}

std::vector<const char*> missing_features(const Target& target) {
  std::vector<const char*> missing;
  for (const char* name : target.needs) {
    if (!has(name)) {
      missing.push_back(name);
    }
  }
  return missing;
}

std::span<const Kernels* const> available_kernels() {
  static const std::vector<const Kernels*> kernels = [] {
    std::vector<const Kernels*> result;
    for (const Target& target : all_targets()) {
      if (target.runs_here) {
        result.push_back(target.kernels);
      }
    }
    return result;
  }();
  return kernels;
}

Result<const Kernels*> select_kernels(const std::string& name) {
  if (name.empty()) {
    return available_kernels().back();
  }
  std::string known;
  for (const Target& target : all_targets()) {
    if (name == target.kernels->name) {
      if (!target.runs_here) {
        std::string missing;
        for (const char* feature : missing_features(target)) {
          append(missing, feature);
        }
        return Error{
            Code::kUnsupported,
            "[kernels.select] this processor can't run target '" + name +
                "': it lacks " + missing};
      }
      return target.kernels;
    }
    append(known, target.kernels->name);
  }
  return Error{
      Code::kInvalidArgument,
      "[kernels.select] unknown target '" + name + "': use one of " + known};
}

Result<const Kernels*> select_kernels() {
  const char* name = std::getenv("AFTERGLOW_TARGET");
  return select_kernels(name == nullptr ? "" : name);
}

}  // namespace afterglow
