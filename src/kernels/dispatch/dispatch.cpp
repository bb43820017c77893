#include "kernels/dispatch/dispatch.h"

#include <cstdlib>
#include <vector>

namespace afterglow {

namespace scalar {
extern const Kernels kTable;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Kernels kTable;
}
namespace avx512 {
extern const Kernels kTable;
}
#endif

namespace {

struct Target {
  const Kernels* kernels;
  bool runs_here;
};

std::vector<Target> all_targets() {
  std::vector<Target> targets{{&scalar::kTable, true}};
#if defined(__x86_64__)
  __builtin_cpu_init();
  // These also ask whether the system saves the registers. F16C came before
  // AVX2 in every processor.
  bool has_avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") &&
                    __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512vnni");
  targets.push_back({&avx2::kTable, has_avx2});
  targets.push_back({&avx512::kTable, has_avx512});
#endif
  return targets;
}

const std::vector<const Kernels*>& runnable() {
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

}  // namespace

CodeForm code_form(const Kernels& kernels, int bits, std::int32_t levels) {
  if (bits == 8 && kernels.words_for_8_bit) {
    return CodeForm::kWords;
  }
  return levels == kInt8Levels ? CodeForm::kBytes : CodeForm::kHighLow;
}

std::span<const Kernels* const> available_kernels() {
  return runnable();
}

Result<const Kernels*> select_kernels(const std::string& name) {
  if (name.empty()) {
    return runnable().back();
  }
  std::string known;
  for (const Target& target : all_targets()) {
    if (name == target.kernels->name) {
      if (!target.runs_here) {
        return Error{
            Code::kUnsupported,
            "[kernels.select] this processor can't run target '" + name + "'"};
      }
      return target.kernels;
    }
    known += known.empty() ? "" : ", ";
    known += target.kernels->name;
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
