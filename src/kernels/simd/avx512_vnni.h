#pragma once

#include "kernels/simd/avx512.h"

// Rows by dot products of four bytes; needs AVX-512 VNNI.
namespace afterglow::AFTERGLOW_TARGET {

struct Rows : SixteenRows {
  static constexpr int kMostByteCode = 255;
  static constexpr bool kNarrowSums = false;

  struct ByteDot {
    __m512i sum = _mm512_setzero_si512();
    void take(Int codes, const std::int8_t* x) {
      sum = _mm512_dpbusd_epi32(sum, codes, four(x));
    }
    Int total() const { return sum; }
  };
  static Int high_low_total(const ByteDot& high, const ByteDot& low) {
    return _mm512_add_epi32(_mm512_slli_epi32(high.sum, 8), low.sum);
  }
};

}  // namespace afterglow::AFTERGLOW_TARGET
