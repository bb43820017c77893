#include "store/mlx_cache_file_values.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace afterglow {
namespace {

constexpr std::uint32_t kF16Infinity = 0x7c00;

std::uint32_t to_f16(float value) {
  std::uint32_t result = 0xffff;
  EXPECT_TRUE(convert_kv(
      KvType::kF32, std::bit_cast<std::uint32_t>(value), KvType::kF16, result
  )) << value;
  return result;
}

// The definition, in double: 2^e * (1 + m/1024), or m * 2^-24.
double f16_value(std::uint32_t bits) {
  int exponent = static_cast<int>(bits >> 10 & 31);
  double mantissa = bits & 0x3ff;
  double value = exponent == 0 ? std::ldexp(mantissa, -24)
                               : std::ldexp(1 + mantissa / 1024, exponent - 15);
  return (bits & 0x8000) != 0 ? -value : value;
}

TEST(MlxCacheValues, EveryF16ValueSurvivesF32AndBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    std::uint32_t wide = 0;
    bool finite = (bits & kF16Infinity) != kF16Infinity;
    ASSERT_EQ(convert_kv(KvType::kF16, bits, KvType::kF32, wide), finite);
    if (finite) {
      ASSERT_EQ(std::bit_cast<float>(wide), f16_value(bits)) << bits;
      ASSERT_EQ(to_f16(std::bit_cast<float>(wide)), bits);
    }
  }
}

TEST(MlxCacheValues, F32RoundsToTheNearestF16TiesToEven) {
  for (std::uint32_t low = 0; low + 1 < kF16Infinity; ++low) {
    auto middle = static_cast<float>((f16_value(low) + f16_value(low + 1)) / 2);
    std::uint32_t even = low + (low & 1);
    ASSERT_EQ(to_f16(middle), even);
    ASSERT_EQ(to_f16(-middle), even | 0x8000);
    ASSERT_EQ(to_f16(std::nextafter(middle, 0.0f)), low);
    ASSERT_EQ(to_f16(std::nextafter(middle, 1e9f)), low + 1);
  }
}

TEST(MlxCacheValues, F32RoundsToTheNearestBf16TiesToEven) {
  for (std::uint32_t low : {0x0000u, 0x0001u, 0x3f80u, 0x3f81u, 0x7f7eu}) {
    std::uint32_t middle = low << 16 | 0x8000;
    for (int step : {-1, 0, 1}) {
      std::uint32_t result = 0;
      ASSERT_TRUE(convert_kv(
          KvType::kF32,
          middle + static_cast<std::uint32_t>(step),
          KvType::kBF16,
          result
      ));
      bool up = step > 0 || (step == 0 && (low & 1) != 0);
      EXPECT_EQ(result, low + (up ? 1 : 0)) << low << " " << step;
    }
  }
}

TEST(MlxCacheValues, WhatIsNotFiniteOrTooLargeIsRefused) {
  auto taken = [](float value, KvType to) {
    std::uint32_t result;
    return convert_kv(
        KvType::kF32, std::bit_cast<std::uint32_t>(value), to, result
    );
  };
  for (KvType to : {KvType::kF16, KvType::kBF16, KvType::kF32}) {
    EXPECT_FALSE(taken(NAN, to));
    EXPECT_FALSE(taken(INFINITY, to));
    EXPECT_FALSE(taken(-INFINITY, to));
  }
  EXPECT_TRUE(taken(65519.0f, KvType::kF16));
  EXPECT_FALSE(taken(65520.0f, KvType::kF16));
  EXPECT_FALSE(taken(-1e30f, KvType::kF16));
  EXPECT_TRUE(taken(-1e30f, KvType::kBF16));
  EXPECT_FALSE(taken(3.4e38f, KvType::kBF16));
}

}  // namespace
}  // namespace afterglow
