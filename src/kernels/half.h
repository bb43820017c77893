#pragma once

#include <bit>
#include <cstdint>

namespace afterglow {

// Static, so that a copy compiled for one instruction set is never the one
// the linker picks for all.

/// The value of an IEEE binary16 bit pattern; exact.
static inline float half_to_float(std::uint16_t half) {
  std::uint32_t sign = std::uint32_t{half} << 16 & 0x80000000u;
  std::uint32_t rest = half & 0x7fffu;
  if (rest >= 0x7c00u) {  // infinity, NaN
    return std::bit_cast<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  }
  if (rest >= 0x400u) {
    return std::bit_cast<float>(sign | ((rest << 13) + (112u << 23)));
  }
  // Zero and subnormals count in units of 2^-24.
  float magnitude = static_cast<float>(rest) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

/// The nearest binary16, ties to even; overflow gives infinity.
static inline std::uint16_t float_to_half(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u) {  // NaN: keep the payload's top, make it quiet
    return static_cast<std::uint16_t>(sign | 0x7e00u | (bits >> 13 & 0x3ffu));
  }
  if (bits >= 0x477ff000u) {  // 65520 and above round to infinity
    return static_cast<std::uint16_t>(sign | 0x7c00u);
  }
  if (bits < 0x38800000u) {  // below 2^-14: subnormal
    // Adding 0.5 leaves the result in units of 2^-24 in the low bits, rounded
    // to nearest even by the addition itself.
    float shifted = std::bit_cast<float>(bits) + 0.5f;
    return static_cast<std::uint16_t>(
        sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u)
    );
  }
  std::uint32_t odd = bits >> 13 & 1u;
  std::uint32_t rounded = bits - (112u << 23) + 0xfffu + odd;
  return static_cast<std::uint16_t>(sign | rounded >> 13);
}

/// The value of a bfloat16 bit pattern; exact.
static inline float bfloat_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

}  // namespace afterglow
