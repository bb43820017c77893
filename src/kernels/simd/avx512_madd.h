#pragma once

#include "kernels/simd/avx512.h"

// Rows for processors without VNNI; see avx2.h for why the sums fit.
namespace afterglow::AFTERGLOW_TARGET {

struct Rows : SixteenRows {
  static constexpr int kMostByteCode = 31;
  static constexpr bool kNarrowSums = true;

  struct ByteDot {
    __m512i sum = _mm512_setzero_si512();
    void take(Int codes, const std::int8_t* x) {
      sum = _mm512_add_epi16(sum, _mm512_maddubs_epi16(codes, four(x)));
      in_order(sum);
    }
    Int total() const { return _mm512_madd_epi16(sum, _mm512_set1_epi16(1)); }
  };
  static Int high_low_total(const ByteDot& high, const ByteDot& low) {
    return _mm512_add_epi32(
        _mm512_madd_epi16(high.sum, _mm512_set1_epi16(256)), low.total()
    );
  }

  struct WordDot {
    __m512i sum = _mm512_setzero_si512();
    void take(Int even, Int odd, const std::int16_t* x) {
      sum = _mm512_add_epi32(sum, _mm512_madd_epi16(even, four(x)));
      sum = _mm512_add_epi32(sum, _mm512_madd_epi16(odd, four(x + 2)));
      in_order(sum);
    }
    Int total() const { return sum; }
  };
  static Int even_bytes(Int a) {
    return _mm512_and_si512(a, _mm512_set1_epi16(255));
  }
  static Int odd_bytes(Int a) { return _mm512_srli_epi16(a, 8); }
};

}  // namespace afterglow::AFTERGLOW_TARGET
