#include <gtest/gtest.h>

#include <tuple>

#include "kernels/dispatch/dispatch.h"
#include "kernels/profile/kernel_list.h"
#include "kernels/testing/attention_cases.h"
#include "kernels/testing/elementwise_cases.h"
#include "kernels/testing/linear_cases.h"

namespace afterglow {
namespace {

using test::KernelCase;
using test::Output;
using test::Random;

// Every size from 1 to twice the lanes and one more.
constexpr std::size_t kMostSize = 33;

template <auto Kernel>
void expect_scalar_bits(const char* name) {
  for (std::size_t n = 1; n <= kMostSize; ++n) {
    Random random(n);
    Output want;
    KernelCase<Kernel>::run(*available_kernels().front(), n, random, want);
    for (const Kernels* kernels : available_kernels().subspan(1)) {
      Random again(n);
      Output got;
      KernelCase<Kernel>::run(*kernels, n, again, got);
      EXPECT_TRUE(test::same_bits(want.bytes(), got.bytes()))
          << name << " of " << kernels->name << ", n = " << n;
    }
  }
}

// Each kernel of the list, which is complete or does not compile, on every
// target that this machine runs: odd sizes, misaligned, before guard pages.
template <std::size_t Index>
class EveryKernel : public testing::Test {
 public:
  void TestBody() override {
    constexpr auto kEntry = std::get<Index>(kKernelList);
    expect_scalar_bits<kEntry.function>(kEntry.name);
  }
};

template <std::size_t... Index>
bool register_all(std::index_sequence<Index...>) {
  (testing::RegisterTest(
       "EveryKernel",
       std::get<Index>(kKernelList).name,
       nullptr,
       nullptr,
       __FILE__,
       __LINE__,
       []() -> testing::Test* { return new EveryKernel<Index>; }
   ),
   ...);
  return true;
}
const bool kRegistered = register_all(std::make_index_sequence<kKernelCount>{});

}  // namespace
}  // namespace afterglow
