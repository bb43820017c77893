#pragma once

#include "kernels/simd/neon.h"

// Rows for every AArch64 processor, by widening products.
namespace afterglow::AFTERGLOW_TARGET {

struct Rows : EightRows {
  // Larger codes would overflow 16 bits, so they are widened and meet 16-bit
  // inputs.
  static constexpr int kMostByteCode = 63;
  static constexpr bool kNarrowSums = true;

  // A lane has one product of every four codes: |sum| <= 8 * 31 * 128 = 31,744
  // for 32 inputs and codes up to 31, 4 * 63 * 128 = 32,256 for 16 and codes up
  // to 63.
  struct ByteDot {
    int16x8_t sum[4] = {
        vdupq_n_s16(0), vdupq_n_s16(0), vdupq_n_s16(0), vdupq_n_s16(0)};
    void take(Int codes, const std::int8_t* x) {
      int8x16_t inputs = vreinterpretq_s8_s32(four(x));
      int8x16_t a = vreinterpretq_s8_s32(codes.a);
      int8x16_t b = vreinterpretq_s8_s32(codes.b);
      sum[0] = vmlal_s8(sum[0], vget_low_s8(a), vget_low_s8(inputs));
      sum[1] = vmlal_high_s8(sum[1], a, inputs);
      sum[2] = vmlal_s8(sum[2], vget_low_s8(b), vget_low_s8(inputs));
      sum[3] = vmlal_high_s8(sum[3], b, inputs);
    }
    Int total() const { return {rows(0), rows(2)}; }
    // Four lanes of two registers are one row.
    int32x4_t rows(int i) const {
      return vpaddq_s32(vpaddlq_s16(sum[i]), vpaddlq_s16(sum[i + 1]));
    }
  };
  static Int high_low_total(const ByteDot& high, const ByteDot& low) {
    Int h = high.total();
    Int l = low.total();
    return {
        vaddq_s32(vshlq_n_s32(h.a, 8), l.a),
        vaddq_s32(vshlq_n_s32(h.b, 8), l.b)};
  }
};

}  // namespace afterglow::AFTERGLOW_TARGET
