#pragma once

#include <cstdint>

#include "kernels/half.h"
#include "kernels/linear/matrix_source.h"

// The small floats of the OCP microscaling formats and of NVFP4.
namespace afterglow {

/// Twice the values of fp4 (e2m1), which are integers then. The zero with a
/// sign is a zero here.
inline constexpr CodeValues kFp4Values = {
    0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// Half of an e8m0 scale, 2^(code - 127), as a bf16; exact. Infinity for the
/// code of NaN, as MLX has it.
inline std::uint16_t half_e8m0(std::uint8_t code) {
  if (code == 255) {
    return 0x7f80;
  }
  // Below the normal numbers a bf16 counts in units of 2^-133.
  return static_cast<std::uint16_t>(code >= 2 ? (code - 1) << 7 : 0x20 << code);
}

/// The value of an e4m3; the codes of NaN count as 480, as MLX has it.
inline float e4m3_to_float(std::uint8_t code) {
  // Its bits are those of a f16 whose exponent counts from 8 less.
  const auto bits =
      static_cast<std::uint16_t>((code & 0x7f) << 7 | (code & 0x80) << 8);
  return half_to_float(bits) * 256;
}

/// Half of an e4m3 scale as a f16; exact.
inline std::uint16_t half_e4m3(std::uint8_t code) {
  const bool is_normal = (code & 0x78) != 0;
  const auto bits = (code & 0x7f) << 7 | (code & 0x80) << 8;
  return is_normal ? static_cast<std::uint16_t>(bits + (7 << 10))
                   : float_to_half(e4m3_to_float(code) * 0.5F);
}

}  // namespace afterglow
