#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/half.h"

// The 16 virtual lanes in plain C++: what every other target must equal bit
// for bit. The operations are documented here once.
namespace afterglow::scalar {

inline constexpr int kLanes = 16;
// Rows of panel_body.h at once, and how many sums registers have room for.
inline constexpr int kPanelRows = 4;
inline constexpr int kPanelSums = 4;

struct F {
  float v[kLanes];
};
struct I {
  std::int32_t v[kLanes];
};
struct Mask {
  bool v[kLanes];
};

template <class Op>
inline F map(Op op) {
  F r;
  for (int i = 0; i < kLanes; ++i) r.v[i] = op(i);
  return r;
}
template <class Op>
inline I map_int(Op op) {
  I r;
  for (int i = 0; i < kLanes; ++i) r.v[i] = op(i);
  return r;
}

inline F set(float x) {
  return map([&](int) { return x; });
}
inline F load(const float* p) {
  return map([&](int i) { return p[i]; });
}
inline void store(float* p, F x) {
  std::memcpy(p, x.v, sizeof x.v);
}
// Lanes from n on are zero and their memory is not touched.
inline F load_first(const float* p, std::size_t n) {
  return map([&](int i) { return std::size_t(i) < n ? p[i] : 0.0f; });
}
inline void store_first(float* p, F x, std::size_t n) {
  std::memcpy(p, x.v, (n < kLanes ? n : kLanes) * sizeof(float));
}
inline F load_half(const std::uint16_t* p) {
  return map([&](int i) { return half_to_float(p[i]); });
}
inline F load_bfloat(const std::uint16_t* p) {
  return map([&](int i) { return bfloat_to_float(p[i]); });
}
inline void store_half(std::uint16_t* p, F x) {
  for (int i = 0; i < kLanes; ++i) p[i] = float_to_half(x.v[i]);
}

inline F add(F a, F b) {
  return map([&](int i) { return a.v[i] + b.v[i]; });
}
inline F sub(F a, F b) {
  return map([&](int i) { return a.v[i] - b.v[i]; });
}
inline F mul(F a, F b) {
  return map([&](int i) { return a.v[i] * b.v[i]; });
}
inline F div(F a, F b) {
  return map([&](int i) { return a.v[i] / b.v[i]; });
}
// a b + c with one rounding.
inline F fma(F a, F b, F c) {
  return map([&](int i) { return __builtin_fmaf(a.v[i], b.v[i], c.v[i]); });
}
// The second operand where either is NaN.
inline F max(F a, F b) {
  return map([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
inline F min(F a, F b) {
  return map([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}

inline I set_int(std::int32_t x) {
  return map_int([&](int) { return x; });
}
inline I load_int(const void* p) {
  I r;
  std::memcpy(r.v, p, sizeof r.v);
  return r;
}
inline void store_int(void* p, I x) {
  std::memcpy(p, x.v, sizeof x.v);
}
// Sums wrap, as they do in registers.
inline std::int32_t wrapping_sum(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(
      static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b)
  );
}
inline I add(I a, I b) {
  return map_int([&](int i) { return wrapping_sum(a.v[i], b.v[i]); });
}
inline I sub(I a, I b) {
  return map_int([&](int i) {
    return static_cast<std::int32_t>(
        static_cast<std::uint32_t>(a.v[i]) - static_cast<std::uint32_t>(b.v[i])
    );
  });
}
inline I max(I a, I b) {
  return map_int([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
inline I bit_and(I a, I b) {
  return map_int([&](int i) { return a.v[i] & b.v[i]; });
}
inline I bit_or(I a, I b) {
  return map_int([&](int i) { return a.v[i] | b.v[i]; });
}
// Byte by byte values[code] of codes below 16.
inline I lookup(const std::uint8_t* values, I codes) {
  return map_int([&](int i) {
    auto four = static_cast<std::uint32_t>(codes.v[i]);
    std::uint32_t found = 0;
    for (int b = 0; b < 32; b += 8) {
      found |= std::uint32_t{values[four >> b & 15]} << b;
    }
    return static_cast<std::int32_t>(found);
  });
}
template <int N>
inline I shift_left(I a) {
  return map_int([&](int i) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a.v[i]) << N);
  });
}
template <int N>
inline I shift_right(I a) {  // zeros come in
  return map_int([&](int i) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a.v[i]) >> N);
  });
}
template <int N>
inline I shift_right_signed(I a) {
  return map_int([&](int i) { return a.v[i] >> N; });
}

// Nearest, ties to even; the lowest integer for NaN and what does not fit.
inline I to_int(F a) {
  return map_int([&](int i) {
    bool fits = a.v[i] >= -0x1p31f && a.v[i] < 0x1p31f;
    return fits ? static_cast<std::int32_t>(std::lrintf(a.v[i])) : INT32_MIN;
  });
}
inline F to_float(I a) {
  return map([&](int i) { return static_cast<float>(a.v[i]); });
}
inline I bits(F a) {
  return load_int(a.v);
}
inline F from_bits(I a) {
  F r;
  std::memcpy(r.v, a.v, sizeof r.v);
  return r;
}
// The low bytes.
inline void store_bytes(std::int8_t* p, I a) {
  for (int i = 0; i < kLanes; ++i) p[i] = static_cast<std::int8_t>(a.v[i]);
}
// The low words (which must hold the values), each four in the order 0 2 1 3.
inline void store_words_0213(std::int16_t* p, I a) {
  constexpr int kOrder[4] = {0, 2, 1, 3};
  for (int i = 0; i < kLanes; ++i) {
    p[i] = static_cast<std::int16_t>(a.v[(i & ~3) + kOrder[i & 3]]);
  }
}

inline Mask less(F a, F b) {
  Mask r;
  for (int i = 0; i < kLanes; ++i) r.v[i] = a.v[i] < b.v[i];
  return r;
}
// Lanes in [first, last); either may lie outside 0..16.
inline Mask lanes_between(std::int32_t first, std::int32_t last) {
  Mask r;
  for (int i = 0; i < kLanes; ++i) r.v[i] = i >= first && i < last;
  return r;
}
inline F select(Mask m, F yes, F no) {
  return map([&](int i) { return m.v[i] ? yes.v[i] : no.v[i]; });
}

// The one reduction tree: lane i takes in lane i + 8, then 4, 2, 1.
inline float reduce_add(F a) {
  for (int w = kLanes / 2; w > 0; w /= 2) {
    for (int i = 0; i < w; ++i) a.v[i] = a.v[i] + a.v[i + w];
  }
  return a.v[0];
}
inline float reduce_max(F a) {
  for (int w = kLanes / 2; w > 0; w /= 2) {
    for (int i = 0; i < w; ++i) {
      a.v[i] = a.v[i] > a.v[i + w] ? a.v[i] : a.v[i + w];
    }
  }
  return a.v[0];
}
inline std::int32_t reduce_add(I a) {
  std::int32_t sum = 0;
  for (int i = 0; i < kLanes; ++i) sum = wrapping_sum(sum, a.v[i]);
  return sum;
}
inline std::int32_t reduce_max(I a) {
  std::int32_t most = a.v[0];
  for (int i = 1; i < kLanes; ++i) most = a.v[i] > most ? a.v[i] : most;
  return most;
}
inline float square_root(float x) {
  return std::sqrt(x);
}

// Rows of a linear layer as the registers hold them. In a linear layer lanes
// never meet, so a target may take a block's 16 rows in parts.
struct Rows {
  static constexpr int kWidth = 16;
  static constexpr int kTile = 1;  // tokens at once
  // The largest code of which a ByteDot can take those of 16 inputs; where
  // its sums are narrow, only half as large a one for 32.
  static constexpr int kMostByteCode = 255;
  static constexpr bool kNarrowSums = false;
  using Float = F;
  using Int = I;
  static Float zero() { return set(0); }
  static Float broadcast(float x) { return set(x); }
  static Float scales_f32(const void* p) {
    return load(static_cast<const float*>(p));
  }
  static Float scales_half(const void* p) {
    return load_half(static_cast<const std::uint16_t*>(p));
  }
  static Float scales_bfloat(const void* p) {
    return load_bfloat(static_cast<const std::uint16_t*>(p));
  }
  static Float multiply_add(Float a, Float b, Float c) { return fma(a, b, c); }
  static Float multiply(Float a, Float b) { return mul(a, b); }
  static Float plus(Float a, Float b) { return add(a, b); }
  static Int plus(Int a, Int b) { return add(a, b); }
  static Float as_float(Int a) { return to_float(a); }
  static Int minus(Int a, std::int32_t b) { return sub(a, set_int(b)); }
  static Int load_codes(const void* p) { return load_int(p); }
  static Int low_nibbles(Int a) { return bit_and(a, set_int(0x0f0f0f0f)); }
  static Int high_nibbles(Int a) {
    return bit_and(shift_right<4>(a), set_int(0x0f0f0f0f));
  }
  using Table = const std::uint8_t*;
  static Table lookup_table(const std::uint8_t* values) { return values; }
  static Int lookup(Table values, Int codes) {
    return scalar::lookup(values, codes);
  }
  static void put(float* p, Float x) { store(p, x); }

  // Sums of products code * x: four codes a row, four x.
  struct ByteDot {
    I sum = set_int(0);
    void take(Int codes, const std::int8_t* x) {
      for (int i = 0; i < kLanes; ++i) {
        auto four = static_cast<std::uint32_t>(codes.v[i]);
        for (int b = 0; b < 4; ++b) {
          sum.v[i] += static_cast<int>(four >> 8 * b & 255) * x[b];
        }
      }
    }
    Int total() const { return sum; }
  };
  static Int high_low_total(const ByteDot& high, const ByteDot& low) {
    return add(shift_left<8>(high.sum), low.sum);
  }
};

}  // namespace afterglow::scalar
