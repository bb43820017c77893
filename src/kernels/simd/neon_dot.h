#pragma once

#include "kernels/simd/neon.h"

// Rows by dot products of four bytes, which came with Armv8.2 (DotProd, of
// signed bytes) and Armv8.6 (I8MM, of unsigned by signed ones).
namespace afterglow::AFTERGLOW_TARGET {

struct Rows : EightRows {
  static constexpr bool kNarrowSums = false;
#if defined(__ARM_FEATURE_MATMUL_INT8)
  static constexpr int kMostByteCode = 255;
  static int32x4_t dot(int32x4_t sum, int32x4_t codes, int32x4_t x) {
    return vusdotq_s32(
        sum, vreinterpretq_u8_s32(codes), vreinterpretq_s8_s32(x)
    );
  }
#else
  // Larger ones would count as negative.
  static constexpr int kMostByteCode = 127;
  static int32x4_t dot(int32x4_t sum, int32x4_t codes, int32x4_t x) {
    return vdotq_s32(sum, vreinterpretq_s8_s32(codes), vreinterpretq_s8_s32(x));
  }
#endif

  struct ByteDot {
    Int sum = {vdupq_n_s32(0), vdupq_n_s32(0)};
    void take(Int codes, const std::int8_t* x) {
      int32x4_t inputs = four(x);
      sum.a = dot(sum.a, codes.a, inputs);
      sum.b = dot(sum.b, codes.b, inputs);
    }
    Int total() const { return sum; }
  };
  static Int high_low_total(const ByteDot& high, const ByteDot& low) {
    return {
        vaddq_s32(vshlq_n_s32(high.sum.a, 8), low.sum.a),
        vaddq_s32(vshlq_n_s32(high.sum.b, 8), low.sum.b)};
  }
};

}  // namespace afterglow::AFTERGLOW_TARGET
