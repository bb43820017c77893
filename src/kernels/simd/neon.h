#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

// The 16 virtual lanes as four NEON registers of AArch64; see scalar.h for the
// meaning. Included by several targets, which add the Rows that their
// extensions allow: neon_mlal.h, neon_dot.h.
namespace afterglow::AFTERGLOW_TARGET {

inline constexpr int kLanes = 16;
// Rows of panel_body.h at once, and how many sums registers have room for.
inline constexpr int kPanelRows = 6;
inline constexpr int kPanelSums = 6;

struct F {
  float32x4_t a, b, c, d;
};
struct I {
  int32x4_t a, b, c, d;
};
struct Mask {
  uint32x4_t a, b, c, d;
};

// R{op(register of each x)...}, for registers a to d.
template <class R, class Op, class... X>
[[gnu::always_inline]] inline R each(Op op, X... x) {
  return {op(x.a...), op(x.b...), op(x.c...), op(x.d...)};
}

inline F set(float x) {
  float32x4_t v = vdupq_n_f32(x);
  return {v, v, v, v};
}
inline F load(const float* p) {
  return {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}
inline void store(float* p, F x) {
  vst1q_f32(p, x.a);
  vst1q_f32(p + 4, x.b);
  vst1q_f32(p + 8, x.c);
  vst1q_f32(p + 12, x.d);
}
inline F load_first(const float* p, std::size_t n) {
  float lanes[kLanes] = {};
  for (std::size_t i = 0; i < n && i < kLanes; ++i) lanes[i] = p[i];
  return load(lanes);
}
inline void store_first(float* p, F x, std::size_t n) {
  float lanes[kLanes];
  store(lanes, x);
  for (std::size_t i = 0; i < n && i < kLanes; ++i) p[i] = lanes[i];
}
inline float32x4_t four_halves(const std::uint16_t* p) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}
inline float32x4_t four_bfloats(const std::uint16_t* p) {
  return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16));
}
inline F load_half(const std::uint16_t* p) {
  return {
      four_halves(p),
      four_halves(p + 4),
      four_halves(p + 8),
      four_halves(p + 12)};
}
inline F load_bfloat(const std::uint16_t* p) {
  return {
      four_bfloats(p),
      four_bfloats(p + 4),
      four_bfloats(p + 8),
      four_bfloats(p + 12)};
}
inline void store_half(std::uint16_t* p, F x) {
  vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(x.a)));
  vst1_u16(p + 4, vreinterpret_u16_f16(vcvt_f16_f32(x.b)));
  vst1_u16(p + 8, vreinterpret_u16_f16(vcvt_f16_f32(x.c)));
  vst1_u16(p + 12, vreinterpret_u16_f16(vcvt_f16_f32(x.d)));
}

// vmaxq and vminq give NaN where either is NaN, so these are written out.
inline float32x4_t larger(float32x4_t x, float32x4_t y) {
  return vbslq_f32(vcgtq_f32(x, y), x, y);
}
inline float32x4_t smaller(float32x4_t x, float32x4_t y) {
  return vbslq_f32(vcltq_f32(x, y), x, y);
}

inline F add(F x, F y) {
  return each<F>([](auto p, auto q) { return vaddq_f32(p, q); }, x, y);
}
inline F sub(F x, F y) {
  return each<F>([](auto p, auto q) { return vsubq_f32(p, q); }, x, y);
}
inline F mul(F x, F y) {
  return each<F>([](auto p, auto q) { return vmulq_f32(p, q); }, x, y);
}
inline F div(F x, F y) {
  return each<F>([](auto p, auto q) { return vdivq_f32(p, q); }, x, y);
}
inline F fma(F x, F y, F z) {
  return each<F>(
      [](auto p, auto q, auto r) { return vfmaq_f32(r, p, q); }, x, y, z
  );
}
inline F max(F x, F y) {
  return each<F>([](auto p, auto q) { return larger(p, q); }, x, y);
}
inline F min(F x, F y) {
  return each<F>([](auto p, auto q) { return smaller(p, q); }, x, y);
}

inline I set_int(std::int32_t x) {
  int32x4_t v = vdupq_n_s32(x);
  return {v, v, v, v};
}
// Bytes, since an address need not be a multiple of 4.
inline int32x4_t load_four(const void* p) {
  return vreinterpretq_s32_u8(vld1q_u8(static_cast<const std::uint8_t*>(p)));
}
inline void store_four(void* p, int32x4_t x) {
  vst1q_u8(static_cast<std::uint8_t*>(p), vreinterpretq_u8_s32(x));
}
inline I load_int(const void* p) {
  auto* in = static_cast<const std::byte*>(p);
  return {
      load_four(in),
      load_four(in + 16),
      load_four(in + 32),
      load_four(in + 48)};
}
inline void store_int(void* p, I x) {
  auto* out = static_cast<std::byte*>(p);
  store_four(out, x.a);
  store_four(out + 16, x.b);
  store_four(out + 32, x.c);
  store_four(out + 48, x.d);
}
inline I add(I x, I y) {
  return each<I>([](auto p, auto q) { return vaddq_s32(p, q); }, x, y);
}
inline I sub(I x, I y) {
  return each<I>([](auto p, auto q) { return vsubq_s32(p, q); }, x, y);
}
inline I max(I x, I y) {
  return each<I>([](auto p, auto q) { return vmaxq_s32(p, q); }, x, y);
}
inline I bit_and(I x, I y) {
  return each<I>([](auto p, auto q) { return vandq_s32(p, q); }, x, y);
}
inline I bit_or(I x, I y) {
  return each<I>([](auto p, auto q) { return vorrq_s32(p, q); }, x, y);
}
inline int32x4_t lookup(uint8x16_t table, int32x4_t codes) {
  return vreinterpretq_s32_u8(vqtbl1q_u8(table, vreinterpretq_u8_s32(codes)));
}
inline I lookup(const std::uint8_t* values, I codes) {
  uint8x16_t table = vld1q_u8(values);
  return each<I>([=](auto p) { return lookup(table, p); }, codes);
}
template <int N>
inline I shift_left(I x) {
  return each<I>([](auto p) { return vshlq_n_s32(p, N); }, x);
}
// The instructions that shift to the right don't take 0.
template <int N>
inline I shift_right(I x) {
  if constexpr (N == 0) {
    return x;
  } else {
    return each<I>(
        [](auto p) {
          return vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(p), N)
          );
        },
        x
    );
  }
}
template <int N>
inline I shift_right_signed(I x) {
  return each<I>([](auto p) { return vshrq_n_s32(p, N); }, x);
}
// The conversion gives 0 for NaN and the largest integer from 2^31 on; both
// become the lowest, as what lies below already is.
inline int32x4_t nearest(float32x4_t x) {
  uint32x4_t fits = vcltq_f32(x, vdupq_n_f32(0x1p31f));
  return vbslq_s32(fits, vcvtnq_s32_f32(x), vdupq_n_s32(INT32_MIN));
}
inline I to_int(F x) {
  return each<I>([](auto p) { return nearest(p); }, x);
}
inline F to_float(I x) {
  return each<F>([](auto p) { return vcvtq_f32_s32(p); }, x);
}
inline I bits(F x) {
  return each<I>([](auto p) { return vreinterpretq_s32_f32(p); }, x);
}
inline F from_bits(I x) {
  return each<F>([](auto p) { return vreinterpretq_f32_s32(p); }, x);
}
inline int16x8_t low_words(int32x4_t x, int32x4_t y) {
  return vuzp1q_s16(vreinterpretq_s16_s32(x), vreinterpretq_s16_s32(y));
}
inline void store_bytes(std::int8_t* p, I x) {
  int16x8_t low = low_words(x.a, x.b);
  int16x8_t high = low_words(x.c, x.d);
  vst1q_s8(p, vuzp1q_s8(vreinterpretq_s8_s16(low), vreinterpretq_s8_s16(high)));
}
inline int32x4_t in_order_0213(int32x4_t x) {
  return vzip1q_s32(x, vextq_s32(x, x, 2));
}
inline void store_words_0213(std::int16_t* p, I x) {
  vst1q_s16(p, low_words(in_order_0213(x.a), in_order_0213(x.b)));
  vst1q_s16(p + 8, low_words(in_order_0213(x.c), in_order_0213(x.d)));
}

inline Mask less(F x, F y) {
  return each<Mask>([](auto p, auto q) { return vcltq_f32(p, q); }, x, y);
}
inline Mask lanes_between(std::int32_t first, std::int32_t last) {
  constexpr std::int32_t kNumbers[4] = {0, 1, 2, 3};
  int32x4_t low = vdupq_n_s32(first);
  int32x4_t high = vdupq_n_s32(last);
  int32x4_t lane = vld1q_s32(kNumbers);
  auto inside = [&](std::int32_t from) {
    int32x4_t number = vaddq_s32(lane, vdupq_n_s32(from));
    return vandq_u32(vcgeq_s32(number, low), vcltq_s32(number, high));
  };
  return {inside(0), inside(4), inside(8), inside(12)};
}
inline F select(Mask m, F yes, F no) {
  return each<F>(
      [](auto p, auto q, auto r) { return vbslq_f32(p, q, r); }, m, yes, no
  );
}

inline float reduce_add(F x) {
  float32x4_t four = vaddq_f32(vaddq_f32(x.a, x.c), vaddq_f32(x.b, x.d));
  float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
inline float reduce_max(F x) {
  float32x4_t four = larger(larger(x.a, x.c), larger(x.b, x.d));
  float32x4_t two = larger(four, vextq_f32(four, four, 2));
  float first = vgetq_lane_f32(two, 0);
  float second = vgetq_lane_f32(two, 1);
  return first > second ? first : second;
}
inline std::int32_t reduce_add(I x) {
  return vaddvq_s32(vaddq_s32(vaddq_s32(x.a, x.b), vaddq_s32(x.c, x.d)));
}
inline std::int32_t reduce_max(I x) {
  return vmaxvq_s32(vmaxq_s32(vmaxq_s32(x.a, x.b), vmaxq_s32(x.c, x.d)));
}
inline float square_root(float x) {
  return vget_lane_f32(vsqrt_f32(vdup_n_f32(x)), 0);
}

// What Rows have in common: eight rows in two registers, which leaves room for
// four tokens with two sums each.
struct EightRows {
  static constexpr int kWidth = 8;
  static constexpr int kTile = 4;
  struct Float {
    float32x4_t a, b;
  };
  struct Int {
    int32x4_t a, b;
  };
  static Float zero() { return broadcast(0); }
  static Float broadcast(float x) { return {vdupq_n_f32(x), vdupq_n_f32(x)}; }
  static Float scales_f32(const void* p) {
    auto* in = static_cast<const float*>(p);
    return {vld1q_f32(in), vld1q_f32(in + 4)};
  }
  static Float scales_half(const void* p) {
    auto* in = static_cast<const std::uint16_t*>(p);
    return {four_halves(in), four_halves(in + 4)};
  }
  static Float scales_bfloat(const void* p) {
    auto* in = static_cast<const std::uint16_t*>(p);
    return {four_bfloats(in), four_bfloats(in + 4)};
  }
  static Float multiply_add(Float x, Float y, Float z) {
    return {vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b)};
  }
  static Float multiply(Float x, Float y) {
    return {vmulq_f32(x.a, y.a), vmulq_f32(x.b, y.b)};
  }
  static Float plus(Float x, Float y) {
    return {vaddq_f32(x.a, y.a), vaddq_f32(x.b, y.b)};
  }
  static Int plus(Int x, Int y) {
    return {vaddq_s32(x.a, y.a), vaddq_s32(x.b, y.b)};
  }
  static Float as_float(Int x) {
    return {vcvtq_f32_s32(x.a), vcvtq_f32_s32(x.b)};
  }
  static Int minus(Int x, std::int32_t y) {
    int32x4_t same = vdupq_n_s32(y);
    return {vsubq_s32(x.a, same), vsubq_s32(x.b, same)};
  }
  static Int load_codes(const void* p) {
    auto* in = static_cast<const std::byte*>(p);
    return {load_four(in), load_four(in + 16)};
  }
  static Int low_nibbles(Int x) {
    int32x4_t mask = vdupq_n_s32(0x0f0f0f0f);
    return {vandq_s32(x.a, mask), vandq_s32(x.b, mask)};
  }
  static Int high_nibbles(Int x) {
    auto high = [](int32x4_t v) {
      return vreinterpretq_s32_u8(vshrq_n_u8(vreinterpretq_u8_s32(v), 4));
    };
    return {high(x.a), high(x.b)};
  }
  using Table = uint8x16_t;
  static Table lookup_table(const std::uint8_t* values) {
    return vld1q_u8(values);
  }
  static Int lookup(Table values, Int codes) {
    return {
        AFTERGLOW_TARGET::lookup(values, codes.a),
        AFTERGLOW_TARGET::lookup(values, codes.b)};
  }
  static void put(float* p, Float x) {
    vst1q_f32(p, x.a);
    vst1q_f32(p + 4, x.b);
  }

  // The same four bytes of inputs in every lane.
  static int32x4_t four(const void* p) {
    std::int32_t word;
    __builtin_memcpy(&word, p, 4);
    return vdupq_n_s32(word);
  }

  // For codes of any byte; x in the order of store_words_0213. The sums of a
  // row's even and odd halves lie side by side until the end.
  struct WordDot {
    int32x4_t sum[4] = {
        vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0)};
    void take(Int even, Int odd, const std::int16_t* x) {
      take_half(even, four(x));
      take_half(odd, four(x + 2));
    }
    void take_half(Int codes, int32x4_t x) {
      int16x8_t w = vreinterpretq_s16_s32(x);
      int16x8_t a = vreinterpretq_s16_s32(codes.a);
      int16x8_t b = vreinterpretq_s16_s32(codes.b);
      sum[0] = vmlal_s16(sum[0], vget_low_s16(a), vget_low_s16(w));
      sum[1] = vmlal_high_s16(sum[1], a, w);
      sum[2] = vmlal_s16(sum[2], vget_low_s16(b), vget_low_s16(w));
      sum[3] = vmlal_high_s16(sum[3], b, w);
    }
    Int total() const {
      return {vpaddq_s32(sum[0], sum[1]), vpaddq_s32(sum[2], sum[3])};
    }
  };
  static Int even_bytes(Int x) {
    int32x4_t mask = vdupq_n_s32(0x00ff00ff);
    return {vandq_s32(x.a, mask), vandq_s32(x.b, mask)};
  }
  static Int odd_bytes(Int x) {
    auto odd = [](int32x4_t v) {
      return vreinterpretq_s32_u16(vshrq_n_u16(vreinterpretq_u16_s32(v), 8));
    };
    return {odd(x.a), odd(x.b)};
  }
};

}  // namespace afterglow::AFTERGLOW_TARGET
