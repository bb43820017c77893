#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/dispatch/dispatch.h"
#include "kernels/half.h"
#include "kernels/math/sincos.h"

namespace afterglow {
namespace {

std::vector<float> grid(float from, float to, std::size_t n) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) {
    double part = static_cast<double>(i) / static_cast<double>(n - 1);
    x[i] = static_cast<float>(from + (to - from) * part);
  }
  return x;
}

double ulps(float got, double want) {
  auto nearest = static_cast<float>(want);
  double step =
      std::nextafter(std::fabs(nearest), INFINITY) - std::fabs(nearest);
  return std::fabs(got - want) / step;
}

TEST(Exp, is_within_one_ulp_and_a_bit_of_libm) {
  std::vector<float> x = grid(-69, 88, 400001);
  std::vector<float> y(x.size());
  for (const Kernels* kernels : available_kernels()) {
    kernels->exp(x.data(), x.size(), y.data());
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      worst = std::max(worst, ulps(y[i], std::exp(double{x[i]})));
    }
    EXPECT_LT(worst, 1.2) << kernels->name;
  }
}

TEST(Exp, is_zero_below_and_bounded_above) {
  const float x[] = {0, -0.0f, -69.5f, -1e30f, -INFINITY, 89, INFINITY, NAN};
  float y[8];
  for (const Kernels* kernels : available_kernels()) {
    kernels->exp(x, 8, y);
    EXPECT_EQ(y[0], 1);
    EXPECT_EQ(y[1], 1);
    EXPECT_EQ(y[2], 0);
    EXPECT_EQ(y[3], 0);
    EXPECT_EQ(y[4], 0);
    EXPECT_NEAR(y[5] / std::exp(88.0), 1, 1e-6);
    EXPECT_NEAR(y[6] / std::exp(88.0), 1, 1e-6);
    EXPECT_TRUE(std::isnan(y[7]));
  }
}

TEST(Tanh, is_within_three_ulps_of_libm_also_near_zero) {
  std::vector<float> x = grid(-12, 12, 200001);
  for (float small = 1e-30f; small < 1; small *= 1.37f) {
    x.push_back(small);
    x.push_back(-small);
  }
  std::vector<float> y(x.size());
  for (const Kernels* kernels : available_kernels()) {
    kernels->tanh(x.data(), x.size(), y.data());
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      worst = std::max(worst, ulps(y[i], std::tanh(double{x[i]})));
    }
    EXPECT_LT(worst, 3) << kernels->name;
  }
}

TEST(SinCos, agree_with_libm_up_to_large_angles) {
  for (double most : {1.0, 1e3, 1e6, 2.6e8}) {
    double worst = 0;
    for (int i = -100000; i <= 100000; ++i) {
      double angle = most * i / 100000.0;
      double s;
      double c;
      sincos(angle, &s, &c);
      worst = std::max(worst, std::fabs(s - std::sin(angle)));
      worst = std::max(worst, std::fabs(c - std::cos(angle)));
    }
    EXPECT_LT(worst, 1e-15) << most;
  }
}

TEST(Half, every_pattern_survives_the_way_to_float_and_back) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    auto half = static_cast<std::uint16_t>(bits);
    float value = half_to_float(half);
    if (std::isnan(value)) {
      EXPECT_TRUE((bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0);
      continue;
    }
    EXPECT_EQ(float_to_half(value), half);
  }
}

// Between two neighbours the middle goes to the even one, anything else to
// the nearer.
TEST(Half, rounds_to_nearest_even) {
  for (std::uint32_t bits = 0; bits < 0x7bff; ++bits) {
    auto low = static_cast<std::uint16_t>(bits);
    auto high = static_cast<std::uint16_t>(bits + 1);
    float middle = (half_to_float(low) + half_to_float(high)) / 2;
    EXPECT_EQ(float_to_half(middle), bits % 2 == 0 ? low : high);
    EXPECT_EQ(float_to_half(std::nextafterf(middle, 0)), low);
    EXPECT_EQ(float_to_half(std::nextafterf(middle, INFINITY)), high);
  }
  EXPECT_EQ(float_to_half(65519.996f), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
}

}  // namespace
}  // namespace afterglow
