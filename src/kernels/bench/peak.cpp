// Compiled once for each target, with its flags, AFTERGLOW_TARGET and the
// header of its lanes.
#include "kernels/bench/peak.h"

#include <cstdint>
#include <utility>

#include AFTERGLOW_LANES

namespace afterglow::AFTERGLOW_TARGET {
namespace {

#define AFTERGLOW_TEXT(name) #name
#define AFTERGLOW_NAME(name) AFTERGLOW_TEXT(name)

// Enough sums on their way to fill the units' latency.
constexpr int kSums = kPanelSums < 12 ? kPanelSums : 12;
constexpr int kDots = 8;

// Packs, not arrays: those stay in registers.
template <class... Sums>
double run_fma(std::size_t rounds, Sums... sums) {
  const F factor = set(0.5F);
  for (std::size_t i = 0; i < rounds; ++i) {
    ((sums = fma(sums, factor, factor)), ...);
  }
  float all = (reduce_add(sums) + ...);
  asm volatile("" : : "r"(&all) : "memory");
  return 2.0 * kLanes * sizeof...(sums) * static_cast<double>(rounds);
}

template <std::size_t... D, class... Dots>
double run_dots(std::size_t rounds, std::index_sequence<D...>, Dots... dots) {
  alignas(64) std::int8_t inputs[4 * sizeof...(D) + 64] = {};
  alignas(64) std::uint8_t bytes[64] = {};
  asm volatile("" : : "r"(bytes) : "memory");
  const auto codes = Rows::load_codes(bytes);
  for (std::size_t i = 0; i < rounds; ++i) {
    // Inputs are read anew each time, as the kernels do.
    asm volatile("" : : "r"(inputs) : "memory");
    (dots.take(codes, inputs + 4 * D), ...);
  }
  auto all = Rows::ByteDot{}.total();
  ((all = Rows::plus(all, dots.total())), ...);
  asm volatile("" : : "r"(&all) : "memory");
  return 2.0 * 4 * Rows::kWidth * sizeof...(D) * static_cast<double>(rounds);
}

template <std::size_t... S>
double float_fma(std::size_t rounds, std::index_sequence<S...>) {
  // Of different values, as far as the compiler knows.
  float starts[kLanes * sizeof...(S)] = {};
  asm volatile("" : : "r"(starts) : "memory");
  return run_fma(rounds, load(starts + kLanes * S)...);
}
template <std::size_t... D>
double byte_dot(std::size_t rounds, std::index_sequence<D...> numbers) {
  return run_dots(rounds, numbers, (void(D), Rows::ByteDot{})...);
}

double float_fma(std::size_t rounds) {
  return float_fma(rounds, std::make_index_sequence<kSums>{});
}
double byte_dot(std::size_t rounds) {
  return byte_dot(rounds, std::make_index_sequence<kDots>{});
}

[[maybe_unused]] const bool kRegistered =
    bench::register_peak({AFTERGLOW_NAME(AFTERGLOW_TARGET), float_fma, byte_dot}
    );

}  // namespace
}  // namespace afterglow::AFTERGLOW_TARGET
