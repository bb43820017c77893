#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

// The 16 virtual lanes as one AVX-512 register; see scalar.h for the meaning.
// Needs AVX-512 F, BW, DQ and VL. Included by several targets, which add the
// Rows that their extensions allow: avx512_madd.h, avx512_vnni.h.
namespace afterglow::AFTERGLOW_TARGET {

inline constexpr int kLanes = 16;
// Rows of panel_body.h at once, and how many sums registers have room for.
inline constexpr int kPanelRows = 12;
inline constexpr int kPanelSums = 24;

using Mask = __mmask16;
struct F {
  __m512 v;
};
struct I {
  __m512i v;
};

inline F set(float x) {
  return {_mm512_set1_ps(x)};
}
inline F load(const float* p) {
  return {_mm512_loadu_ps(p)};
}
inline void store(float* p, F x) {
  _mm512_storeu_ps(p, x.v);
}
inline Mask first_lanes(std::size_t n) {
  return static_cast<Mask>(n < 16 ? (1u << n) - 1 : 0xffffu);
}
inline F load_first(const float* p, std::size_t n) {
  return {_mm512_maskz_loadu_ps(first_lanes(n), p)};
}
inline void store_first(float* p, F x, std::size_t n) {
  _mm512_mask_storeu_ps(p, first_lanes(n), x.v);
}
inline F load_half(const std::uint16_t* p) {
  return {
      _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
inline F load_bfloat(const std::uint16_t* p) {
  __m512i wide = _mm512_cvtepu16_epi32(
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))
  );
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
inline void store_half(std::uint16_t* p, F x) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  _mm256_storeu_si256(
      reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(x.v, kNearest)
  );
}

inline F add(F x, F y) {
  return {_mm512_add_ps(x.v, y.v)};
}
inline F sub(F x, F y) {
  return {_mm512_sub_ps(x.v, y.v)};
}
inline F mul(F x, F y) {
  return {_mm512_mul_ps(x.v, y.v)};
}
inline F div(F x, F y) {
  return {_mm512_div_ps(x.v, y.v)};
}
inline F fma(F x, F y, F z) {
  return {_mm512_fmadd_ps(x.v, y.v, z.v)};
}
inline F max(F x, F y) {
  return {_mm512_max_ps(x.v, y.v)};
}
inline F min(F x, F y) {
  return {_mm512_min_ps(x.v, y.v)};
}

inline I set_int(std::int32_t x) {
  return {_mm512_set1_epi32(x)};
}
inline I load_int(const void* p) {
  return {_mm512_loadu_si512(p)};
}
inline void store_int(void* p, I x) {
  _mm512_storeu_si512(p, x.v);
}
inline I add(I x, I y) {
  return {_mm512_add_epi32(x.v, y.v)};
}
inline I sub(I x, I y) {
  return {_mm512_sub_epi32(x.v, y.v)};
}
inline I max(I x, I y) {
  return {_mm512_max_epi32(x.v, y.v)};
}
inline I bit_and(I x, I y) {
  return {_mm512_and_si512(x.v, y.v)};
}
inline I bit_or(I x, I y) {
  return {_mm512_or_si512(x.v, y.v)};
}
inline I lookup(const std::uint8_t* values, I codes) {
  __m512i table = _mm512_broadcast_i32x4(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(values))
  );
  return {_mm512_shuffle_epi8(table, codes.v)};
}
template <int N>
inline I shift_left(I x) {
  return {_mm512_slli_epi32(x.v, N)};
}
template <int N>
inline I shift_right(I x) {
  return {_mm512_srli_epi32(x.v, N)};
}
template <int N>
inline I shift_right_signed(I x) {
  return {_mm512_srai_epi32(x.v, N)};
}
inline I to_int(F x) {
  return {_mm512_cvtps_epi32(x.v)};
}
inline F to_float(I x) {
  return {_mm512_cvtepi32_ps(x.v)};
}
inline I bits(F x) {
  return {_mm512_castps_si512(x.v)};
}
inline F from_bits(I x) {
  return {_mm512_castsi512_ps(x.v)};
}
inline void store_bytes(std::int8_t* p, I x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(x.v));
}
inline void store_words_0213(std::int16_t* p, I x) {
  __m512i order = _mm512_shuffle_epi32(x.v, _MM_PERM_DBCA);
  _mm256_storeu_si256(
      reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(order)
  );
}

inline Mask less(F x, F y) {
  return _mm512_cmp_ps_mask(x.v, y.v, _CMP_LT_OQ);
}
inline Mask lanes_between(std::int32_t first, std::int32_t last) {
  __m512i lanes =
      _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return static_cast<Mask>(
      _mm512_cmpge_epi32_mask(lanes, _mm512_set1_epi32(first)) &
      _mm512_cmplt_epi32_mask(lanes, _mm512_set1_epi32(last))
  );
}
inline F select(Mask m, F yes, F no) {
  return {_mm512_mask_blend_ps(m, no.v, yes.v)};
}

inline float reduce_add(F x) {
  __m256 eight = _mm256_add_ps(
      _mm512_castps512_ps256(x.v), _mm512_extractf32x8_ps(x.v, 1)
  );
  __m128 four = _mm_add_ps(
      _mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1)
  );
  __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float reduce_max(F x) {
  __m256 eight = _mm256_max_ps(
      _mm512_castps512_ps256(x.v), _mm512_extractf32x8_ps(x.v, 1)
  );
  __m128 four = _mm_max_ps(
      _mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1)
  );
  __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
inline std::int32_t reduce_add(I x) {
  return _mm512_reduce_add_epi32(x.v);
}
inline std::int32_t reduce_max(I x) {
  return _mm512_reduce_max_epi32(x.v);
}
inline float square_root(float x) {
  return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)));
}

// What Rows have in common.
struct SixteenRows {
  static constexpr int kWidth = 16;
  static constexpr int kTile = 8;
  using Float = __m512;
  using Int = __m512i;
  static Float zero() { return _mm512_setzero_ps(); }
  static Float broadcast(float x) { return _mm512_set1_ps(x); }
  static Float scales_f32(const void* p) { return _mm512_loadu_ps(p); }
  static Float scales_half(const void* p) {
    return load_half(static_cast<const std::uint16_t*>(p)).v;
  }
  static Float scales_bfloat(const void* p) {
    return load_bfloat(static_cast<const std::uint16_t*>(p)).v;
  }
  static Float multiply_add(Float a, Float b, Float c) {
    return _mm512_fmadd_ps(a, b, c);
  }
  static Float multiply(Float a, Float b) { return _mm512_mul_ps(a, b); }
  static Float plus(Float a, Float b) { return _mm512_add_ps(a, b); }
  static Int plus(Int a, Int b) { return _mm512_add_epi32(a, b); }
  static Float as_float(Int a) { return _mm512_cvtepi32_ps(a); }
  static Int minus(Int a, std::int32_t b) {
    return _mm512_sub_epi32(a, _mm512_set1_epi32(b));
  }
  static Int load_codes(const void* p) { return _mm512_loadu_si512(p); }
  static Int low_nibbles(Int a) {
    return _mm512_and_si512(a, _mm512_set1_epi8(15));
  }
  static Int high_nibbles(Int a) {
    return _mm512_and_si512(_mm512_srli_epi16(a, 4), _mm512_set1_epi8(15));
  }
  using Table = __m512i;
  static Table lookup_table(const std::uint8_t* values) {
    return _mm512_broadcast_i32x4(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(values))
    );
  }
  static Int lookup(Table values, Int codes) {
    return _mm512_shuffle_epi8(values, codes);
  }
  static void put(float* p, Float x) { _mm512_storeu_ps(p, x); }
  static __m512i four(const void* p) {
    std::int32_t word;
    __builtin_memcpy(&word, p, 4);
    return _mm512_set1_epi32(word);
  }
  // Or the compiler adds up as a tree, with every product on the stack.
  static void in_order(__m512i& sum) { asm("" : "+v"(sum)); }
};

}  // namespace afterglow::AFTERGLOW_TARGET
