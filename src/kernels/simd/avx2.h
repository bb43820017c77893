#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

// The 16 virtual lanes as two AVX2 registers; see scalar.h for the meaning.
// Needs AVX2, FMA and F16C.
namespace afterglow::avx2 {

inline constexpr int kLanes = 16;
// Rows of panel_body.h at once, and how many sums registers have room for.
inline constexpr int kPanelRows = 6;
inline constexpr int kPanelSums = 6;

struct F {
  __m256 a, b;
};
struct I {
  __m256i a, b;
};
struct Mask {
  __m256 a, b;
};

inline F set(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
inline F load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
inline void store(float* p, F x) {
  _mm256_storeu_ps(p, x.a);
  _mm256_storeu_ps(p + 8, x.b);
}
inline I lane_numbers() {
  return {
      _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
      _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15)};
}
inline I first_lanes(std::size_t n) {
  __m256i count = _mm256_set1_epi32(n < 16 ? static_cast<int>(n) : 16);
  I lanes = lane_numbers();
  return {
      _mm256_cmpgt_epi32(count, lanes.a), _mm256_cmpgt_epi32(count, lanes.b)};
}
inline F load_first(const float* p, std::size_t n) {
  I m = first_lanes(n);
  return {_mm256_maskload_ps(p, m.a), _mm256_maskload_ps(p + 8, m.b)};
}
inline void store_first(float* p, F x, std::size_t n) {
  I m = first_lanes(n);
  _mm256_maskstore_ps(p, m.a, x.a);
  _mm256_maskstore_ps(p + 8, m.b, x.b);
}
inline __m256 eight_halves(const std::uint16_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline __m256 eight_bfloats(const std::uint16_t* p) {
  __m256i wide =
      _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))
      );
  return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
inline F load_half(const std::uint16_t* p) {
  return {eight_halves(p), eight_halves(p + 8)};
}
inline F load_bfloat(const std::uint16_t* p) {
  return {eight_bfloats(p), eight_bfloats(p + 8)};
}
inline void store_half(std::uint16_t* p, F x) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  auto* out = reinterpret_cast<__m128i*>(p);
  _mm_storeu_si128(out, _mm256_cvtps_ph(x.a, kNearest));
  _mm_storeu_si128(out + 1, _mm256_cvtps_ph(x.b, kNearest));
}

inline F add(F x, F y) {
  return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
}
inline F sub(F x, F y) {
  return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)};
}
inline F mul(F x, F y) {
  return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
}
inline F div(F x, F y) {
  return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)};
}
inline F fma(F x, F y, F z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
inline F max(F x, F y) {
  return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)};
}
inline F min(F x, F y) {
  return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)};
}

inline I set_int(std::int32_t x) {
  return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
}
inline I load_int(const void* p) {
  auto* in = static_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(in), _mm256_loadu_si256(in + 1)};
}
inline void store_int(void* p, I x) {
  auto* out = static_cast<__m256i*>(p);
  _mm256_storeu_si256(out, x.a);
  _mm256_storeu_si256(out + 1, x.b);
}
inline I add(I x, I y) {
  return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)};
}
inline I sub(I x, I y) {
  return {_mm256_sub_epi32(x.a, y.a), _mm256_sub_epi32(x.b, y.b)};
}
inline I max(I x, I y) {
  return {_mm256_max_epi32(x.a, y.a), _mm256_max_epi32(x.b, y.b)};
}
inline I bit_and(I x, I y) {
  return {_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)};
}
inline I bit_or(I x, I y) {
  return {_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)};
}
inline I lookup(const std::uint8_t* values, I codes) {
  __m256i table = _mm256_broadcastsi128_si256(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(values))
  );
  return {
      _mm256_shuffle_epi8(table, codes.a), _mm256_shuffle_epi8(table, codes.b)};
}
template <int N>
inline I shift_left(I x) {
  return {_mm256_slli_epi32(x.a, N), _mm256_slli_epi32(x.b, N)};
}
template <int N>
inline I shift_right(I x) {
  return {_mm256_srli_epi32(x.a, N), _mm256_srli_epi32(x.b, N)};
}
template <int N>
inline I shift_right_signed(I x) {
  return {_mm256_srai_epi32(x.a, N), _mm256_srai_epi32(x.b, N)};
}
inline I to_int(F x) {
  return {_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)};
}
inline F to_float(I x) {
  return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)};
}
inline I bits(F x) {
  return {_mm256_castps_si256(x.a), _mm256_castps_si256(x.b)};
}
inline F from_bits(I x) {
  return {_mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b)};
}
inline void store_bytes(std::int8_t* p, I x) {
  __m256i low = _mm256_setr_epi8(
      0,
      4,
      8,
      12,
      -1,
      -1,
      -1,
      -1,
      -1,
      -1,
      -1,
      -1,
      -1,
      -1,
      -1,
      -1,
      0,
      4,
      8,
      12,
      -1,
      -1,
      -1,
      -1,
      -1,
      -1,
      -1,
      -1,
      -1,
      -1,
      -1,
      -1
  );
  __m256i both = _mm256_unpacklo_epi32(
      _mm256_shuffle_epi8(x.a, low), _mm256_shuffle_epi8(x.b, low)
  );  // 128-bit halves: [a0 b0], [a1 b1] as groups of four bytes
  __m128i ab = _mm_unpacklo_epi32(
      _mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1)
  );
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), ab);
}
inline void store_words_0213(std::int16_t* p, I x) {
  __m256i a = _mm256_shuffle_epi32(x.a, _MM_SHUFFLE(3, 1, 2, 0));
  __m256i b = _mm256_shuffle_epi32(x.b, _MM_SHUFFLE(3, 1, 2, 0));
  __m256i words = _mm256_permute4x64_epi64(
      _mm256_packs_epi32(a, b), _MM_SHUFFLE(3, 1, 2, 0)
  );
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), words);
}

inline Mask less(F x, F y) {
  return {
      _mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ)};
}
inline Mask lanes_between(std::int32_t first, std::int32_t last) {
  I lanes = lane_numbers();
  __m256i low = _mm256_set1_epi32(first);
  __m256i high = _mm256_set1_epi32(last);
  auto inside = [&](__m256i lane) {
    return _mm256_castsi256_ps(_mm256_andnot_si256(
        _mm256_cmpgt_epi32(low, lane), _mm256_cmpgt_epi32(high, lane)
    ));
  };
  return {inside(lanes.a), inside(lanes.b)};
}
inline F select(Mask m, F yes, F no) {
  return {
      _mm256_blendv_ps(no.a, yes.a, m.a), _mm256_blendv_ps(no.b, yes.b, m.b)};
}

inline float reduce_add(F x) {
  __m256 eight = _mm256_add_ps(x.a, x.b);
  __m128 four = _mm_add_ps(
      _mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1)
  );
  __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float reduce_max(F x) {
  __m256 eight = _mm256_max_ps(x.a, x.b);
  __m128 four = _mm_max_ps(
      _mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1)
  );
  __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
inline std::int32_t reduce_add(I x) {
  __m256i eight = _mm256_add_epi32(x.a, x.b);
  __m128i four = _mm_add_epi32(
      _mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1)
  );
  __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}
inline std::int32_t reduce_max(I x) {
  __m256i eight = _mm256_max_epi32(x.a, x.b);
  __m128i four = _mm_max_epi32(
      _mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1)
  );
  __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}
inline float square_root(float x) {
  return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)));
}

struct Rows {
  static constexpr int kWidth = 8;
  static constexpr int kTile = 4;
  // Larger codes would overflow the 16 bits of vpmaddubsw, so they are widened
  // and meet 16-bit inputs.
  static constexpr int kMostByteCode = 31;
  static constexpr bool kNarrowSums = true;
  using Float = __m256;
  using Int = __m256i;
  static Float zero() { return _mm256_setzero_ps(); }
  static Float broadcast(float x) { return _mm256_set1_ps(x); }
  static Float scales_f32(const void* p) {
    return _mm256_loadu_ps(static_cast<const float*>(p));
  }
  static Float scales_half(const void* p) {
    return eight_halves(static_cast<const std::uint16_t*>(p));
  }
  static Float scales_bfloat(const void* p) {
    return eight_bfloats(static_cast<const std::uint16_t*>(p));
  }
  static Float multiply_add(Float a, Float b, Float c) {
    return _mm256_fmadd_ps(a, b, c);
  }
  static Float multiply(Float a, Float b) { return _mm256_mul_ps(a, b); }
  static Float plus(Float a, Float b) { return _mm256_add_ps(a, b); }
  static Int plus(Int a, Int b) { return _mm256_add_epi32(a, b); }
  static Float as_float(Int a) { return _mm256_cvtepi32_ps(a); }
  static Int minus(Int a, std::int32_t b) {
    return _mm256_sub_epi32(a, _mm256_set1_epi32(b));
  }
  static Int load_codes(const void* p) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(p));
  }
  static Int low_nibbles(Int a) {
    return _mm256_and_si256(a, _mm256_set1_epi8(15));
  }
  static Int high_nibbles(Int a) {
    return _mm256_and_si256(_mm256_srli_epi16(a, 4), _mm256_set1_epi8(15));
  }
  using Table = __m256i;
  static Table lookup_table(const std::uint8_t* values) {
    return _mm256_broadcastsi128_si256(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(values))
    );
  }
  static Int lookup(Table values, Int codes) {
    return _mm256_shuffle_epi8(values, codes);
  }
  static void put(float* p, Float x) { _mm256_storeu_ps(p, x); }
  static __m256i four(const void* p) {
    std::int32_t word;
    __builtin_memcpy(&word, p, 4);
    return _mm256_set1_epi32(word);
  }
  // Or the compiler adds up as a tree, with every product on the stack.
  static void in_order(__m256i& sum) { asm("" : "+x"(sum)); }

  // 16 bits hold the sums: |sum| <= 8 * 2 * 15 * 128 = 30,720 for 32 inputs
  // and codes up to 15, 4 * 2 * 31 * 128 = 31,744 for 16 and codes up to 31.
  struct ByteDot {
    __m256i sum = _mm256_setzero_si256();
    void take(Int codes, const std::int8_t* x) {
      sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(codes, four(x)));
      in_order(sum);
    }
    Int total() const { return _mm256_madd_epi16(sum, _mm256_set1_epi16(1)); }
  };
  static Int high_low_total(const ByteDot& high, const ByteDot& low) {
    return _mm256_add_epi32(
        _mm256_madd_epi16(high.sum, _mm256_set1_epi16(256)), low.total()
    );
  }

  // For codes of any byte; x in the order of store_words_0213.
  struct WordDot {
    __m256i sum = _mm256_setzero_si256();
    void take(Int even, Int odd, const std::int16_t* x) {
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(even, four(x)));
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(odd, four(x + 2)));
      in_order(sum);
    }
    Int total() const { return sum; }
  };
  static Int even_bytes(Int a) {
    return _mm256_and_si256(a, _mm256_set1_epi16(255));
  }
  static Int odd_bytes(Int a) { return _mm256_srli_epi16(a, 8); }
};

}  // namespace afterglow::avx2
