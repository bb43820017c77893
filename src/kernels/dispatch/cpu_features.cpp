#include "kernels/dispatch/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace afterglow {

#if defined(__x86_64__)

namespace {

// Clang 14 does not know this one by name. That the system saves its
// registers is what AVX2 asks already.
bool has_f16c() {
  unsigned a;
  unsigned b;
  unsigned c = 0;
  unsigned d;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

}  // namespace

std::span<const CpuFeature> cpu_features() {
  static const CpuFeature features[] = {
      {"avx2", __builtin_cpu_supports("avx2") != 0},
      {"fma", __builtin_cpu_supports("fma") != 0},
      {"f16c", has_f16c()},
      {"avx512f", __builtin_cpu_supports("avx512f") != 0},
      {"avx512bw", __builtin_cpu_supports("avx512bw") != 0},
      {"avx512dq", __builtin_cpu_supports("avx512dq") != 0},
      {"avx512vl", __builtin_cpu_supports("avx512vl") != 0},
      {"avx512vnni", __builtin_cpu_supports("avx512vnni") != 0},
  };
  return features;
}

#elif defined(__aarch64__)

namespace {

// Elsewhere than on Linux: what the compiler takes for granted.
#if defined(__linux__)
bool has_dotprod() {
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
}
bool has_i8mm() {
  return (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
}
#else
bool has_dotprod() {
#if defined(__ARM_FEATURE_DOTPROD)
  return true;
#else
  return false;
#endif
}
bool has_i8mm() {
#if defined(__ARM_FEATURE_MATMUL_INT8)
  return true;
#else
  return false;
#endif
}
#endif

}  // namespace

std::span<const CpuFeature> cpu_features() {
  static const CpuFeature features[] = {
      {"dotprod", has_dotprod()},
      {"i8mm", has_i8mm()},
  };
  return features;
}

#else

std::span<const CpuFeature> cpu_features() {
  return {};
}

#endif

}  // namespace afterglow
