#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/dispatch/dispatch.h"
#include "kernels/half.h"
#include "kernels/testing/guarded.h"
#include "kernels/testing/kernel_case.h"

// What the small kernels compute, against double. That all targets give the
// same bits is every_kernel_test.cpp's.
namespace afterglow {
namespace {

using test::Guarded;
using test::Random;
using test::wide_floats;

constexpr std::size_t kMostSize = 33;

// Calls run(kernels, n) for every table and size.
template <class Run>
void for_every_size(const Run& run) {
  for (const Kernels* kernels : available_kernels()) {
    for (std::size_t n = 1; n <= kMostSize; ++n) {
      SCOPED_TRACE(std::string(kernels->name) + " n " + std::to_string(n));
      run(*kernels, n);
    }
  }
}

std::vector<float> wide_range(std::size_t n, std::uint64_t seed) {
  Random random(seed);
  return wide_floats(n, random);
}

TEST(Kernels, softcap_caps) {
  for (const Kernels* k : available_kernels()) {
    float x[] = {0, 1, 1e6f, -1e6f};
    k->softcap(x, 4, 30);
    EXPECT_EQ(x[0], 0);
    EXPECT_NEAR(x[1], 30 * std::tanh(1.0 / 30), 1e-6);
    EXPECT_EQ(x[2], 30);
    EXPECT_EQ(x[3], -30);
  }
}

TEST(Kernels, gates_are_silu_and_gelu) {
  for (const Kernels* k : available_kernels()) {
    for (double x : {-200.0, -20.0, -3.0, -0.1, 0.0, 0.3, 2.0, 15.0, 150.0}) {
      auto gate = static_cast<float>(x);
      float up = 1.5f;
      float y;
      k->gate_silu(&gate, &up, 1, &y);
      EXPECT_NEAR(y, 1.5 * x / (1 + std::exp(-x)), 1e-6 * (1 + std::fabs(x)));
      k->gate_gelu(&gate, &up, 1, &y);
      double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
      double want = 1.5 * 0.5 * x * (1 + std::tanh(inner));
      EXPECT_NEAR(y, want, 1e-6 * (1 + std::fabs(x)));
    }
  }
}

TEST(Kernels, to_half_rounds_to_nearest_and_stays_finite) {
  for (const Kernels* k : available_kernels()) {
    std::vector<float> x = wide_range(1000, 1);
    const float ends[] = {1e9f, -1e9f, 65519, 65520, INFINITY, 3e-7f, 1e-9f};
    x.insert(x.end(), std::begin(ends), std::end(ends));
    std::vector<std::uint16_t> y(x.size());
    k->to_half(x.data(), x.size(), y.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      float within = std::clamp(x[i], -65504.0f, 65504.0f);
      EXPECT_EQ(y[i], float_to_half(within)) << k->name << " " << x[i];
    }
    float none = NAN;
    k->to_half(&none, 1, y.data());
    EXPECT_TRUE(std::isnan(half_to_float(y[0]))) << k->name;
  }
}

TEST(Kernels, rms_norm_is_the_formula) {
  for_every_size([](const Kernels& k, std::size_t n) {
    Guarded<float> x(wide_range(n, n));
    Guarded<float> w(wide_range(n, n + 100));
    Guarded<float> y(n);
    k.rms_norm(x.data(), w.data(), 1e-5f, n, y.data());
    double squares = 0;
    for (std::size_t i = 0; i < n; ++i) {
      squares += double{x[i]} * x[i];
    }
    double factor = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
    for (std::size_t i = 0; i < n; ++i) {
      double want = x[i] * factor * w[i];
      EXPECT_NEAR(y[i], want, 1e-6 * (std::fabs(want) + 1e-3));
    }
  });
}

TEST(Kernels, rope_turns_pairs) {
  for_every_size([](const Kernels& k, std::size_t n) {
    for (bool interleaved : {false, true}) {
      std::vector<float> input = wide_range(2 * n, n);
      Guarded<float> x(input);
      Guarded<float> c(n);
      Guarded<float> s(n);
      for (std::size_t i = 0; i < n; ++i) {
        c[i] = std::cos(static_cast<float>(i));
        s[i] = std::sin(static_cast<float>(i));
      }
      k.rope(x.data(), c.data(), s.data(), n, interleaved);
      for (std::size_t i = 0; i < n; ++i) {
        std::size_t first = interleaved ? 2 * i : i;
        std::size_t second = interleaved ? 2 * i + 1 : i + n;
        double a = input[first];
        double b = input[second];
        double most = std::fabs(a) + std::fabs(b);
        EXPECT_NEAR(x[first], a * c[i] - b * s[i], 1e-6 * most);
        EXPECT_NEAR(x[second], b * c[i] + a * s[i], 1e-6 * most);
      }
    }
  });
}

TEST(Kernels, argmax_is_the_lowest_of_the_largest) {
  for_every_size([](const Kernels& k, std::size_t n) {
    for (std::size_t at = 0; at < n; ++at) {
      Guarded<float> x(std::vector<float>(n, -3));
      x[at] = -1;
      x[n - 1] = -1;
      EXPECT_EQ(k.argmax(x.data(), n), at);
    }
  });
}

TEST(Kernels, exp_sum_is_near_the_double_loop) {
  for_every_size([](const Kernels& k, std::size_t n) {
    Guarded<float> x(wide_range(n, n));
    float most = *std::max_element(x.data(), x.data() + n);
    double want = 0;
    for (std::size_t i = 0; i < n; ++i) {
      want += std::exp(double{x[i]} - most);
    }
    EXPECT_NEAR(k.exp_sum(x.data(), n, most), want, 1e-5 * want);
  });
}

}  // namespace
}  // namespace afterglow
