#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "kernels/dispatch/dispatch.h"
#include "kernels/half.h"
#include "kernels/testing/guarded.h"
#include "kernels/testing/random.h"

namespace afterglow {
namespace {

using test::Guarded;
using test::Random;
using test::same_bits;

// Every size from 1 to twice the lanes and one more.
constexpr std::size_t kMostSize = 33;

const Kernels& scalar_kernels() {
  return *available_kernels().front();
}

// Calls run(kernels, n) for every table and size; its results must equal the
// scalar table's bit for bit.
template <class Run>
void expect_same_bits(const Run& run) {
  for (const Kernels* kernels : available_kernels().subspan(1)) {
    for (std::size_t n = 1; n <= kMostSize; ++n) {
      EXPECT_TRUE(same_bits(run(scalar_kernels(), n), run(*kernels, n)))
          << kernels->name << ", n = " << n;
    }
  }
}

std::vector<float> wide_range(std::size_t n, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> x = random.floats(n);
  for (float& value : x) {
    value = std::ldexp(value, static_cast<int>(random.below(16)) - 8);
  }
  return x;
}

TEST(Targets, select_by_name_or_fail_with_a_reason) {
  ASSERT_TRUE(select_kernels("scalar").ok());
  EXPECT_STREQ((*select_kernels("scalar"))->name, "scalar");
  EXPECT_EQ(*select_kernels(""), available_kernels().back());
  Result<const Kernels*> unknown = select_kernels("sse9");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, Code::kInvalidArgument);
  EXPECT_NE(unknown.error().message.find("sse9"), std::string::npos);
  EXPECT_NE(unknown.error().message.find("scalar"), std::string::npos);
}

TEST(Targets, exp_has_the_scalar_bits) {
  expect_same_bits([](const Kernels& k, std::size_t n) {
    Guarded<float> x(wide_range(n, n));
    x[n / 2] = n % 3 == 0 ? NAN : n % 3 == 1 ? -INFINITY : -80.0f;
    Guarded<float> y(n);
    k.exp(x.data(), n, y.data());
    if (n % 3 == 0) {
      y[n / 2] = 0;  // the payload of a NaN is no one's promise
    }
    return y.copy();
  });
}

TEST(Targets, tanh_has_the_scalar_bits) {
  expect_same_bits([](const Kernels& k, std::size_t n) {
    Guarded<float> x(wide_range(n, n));
    Guarded<float> y(n);
    k.tanh(x.data(), n, y.data());
    return y.copy();
  });
}

TEST(Targets, add_has_the_scalar_bits) {
  expect_same_bits([](const Kernels& k, std::size_t n) {
    Guarded<float> x(wide_range(n, n));
    Guarded<float> y(wide_range(n, n + 100));
    k.add(x.data(), y.data(), n);
    return x.copy();
  });
}

TEST(Targets, softcap_has_the_scalar_bits_and_caps) {
  expect_same_bits([](const Kernels& k, std::size_t n) {
    Guarded<float> x(wide_range(n, n));
    k.softcap(x.data(), n, 30);
    return x.copy();
  });
  float x[] = {0, 1, 1e6f, -1e6f};
  scalar_kernels().softcap(x, 4, 30);
  EXPECT_EQ(x[0], 0);
  EXPECT_NEAR(x[1], 30 * std::tanh(1.0 / 30), 1e-6);
  EXPECT_EQ(x[2], 30);
  EXPECT_EQ(x[3], -30);
}

TEST(Targets, gates_have_the_scalar_bits) {
  for (auto gate : {&Kernels::gate_silu, &Kernels::gate_gelu}) {
    expect_same_bits([&](const Kernels& k, std::size_t n) {
      Guarded<float> g(wide_range(n, n));
      Guarded<float> u(wide_range(n, n + 100));
      Guarded<float> y(n);
      (k.*gate)(g.data(), u.data(), n, y.data());
      std::vector<float> result = y.copy();
      (k.*gate)(g.data(), u.data(), n, g.data());
      EXPECT_TRUE(same_bits(result, g.copy())) << "in place";
      return result;
    });
  }
}

TEST(Targets, gates_are_silu_and_gelu) {
  for (double x : {-200.0, -20.0, -3.0, -0.1, 0.0, 0.3, 2.0, 15.0, 150.0}) {
    auto gate = static_cast<float>(x);
    float up = 1.5f;
    float y;
    scalar_kernels().gate_silu(&gate, &up, 1, &y);
    EXPECT_NEAR(y, 1.5 * x / (1 + std::exp(-x)), 1e-6 * (1 + std::fabs(x)));
    scalar_kernels().gate_gelu(&gate, &up, 1, &y);
    double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
    double want = 1.5 * 0.5 * x * (1 + std::tanh(inner));
    EXPECT_NEAR(y, want, 1e-6 * (1 + std::fabs(x)));
  }
}

TEST(Targets, to_half_has_the_scalar_bits) {
  expect_same_bits([](const Kernels& k, std::size_t n) {
    Guarded<float> x(wide_range(n, n));
    x[n / 2] = n % 4 == 0   ? 1e9f
               : n % 4 == 1 ? -1e9f
               : n % 4 == 2 ? 3e-7f
                            : 65519.0f;
    Guarded<std::uint16_t> y(n);
    k.to_half(x.data(), n, y.data());
    return y.copy();
  });
  float x[] = {1e9f, -1e9f, 1.0f};
  std::uint16_t y[3];
  scalar_kernels().to_half(x, 3, y);
  EXPECT_EQ(half_to_float(y[0]), 65504);
  EXPECT_EQ(half_to_float(y[1]), -65504);
  EXPECT_EQ(half_to_float(y[2]), 1);
}

TEST(Targets, rms_norm_has_the_scalar_bits_and_the_right_value) {
  expect_same_bits([](const Kernels& k, std::size_t n) {
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
    return y.copy();
  });
}

TEST(Targets, rope_has_the_scalar_bits_and_turns_pairs) {
  for (bool interleaved : {false, true}) {
    expect_same_bits([&](const Kernels& k, std::size_t n) {
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
      return x.copy();
    });
  }
}

TEST(Targets, argmax_is_the_lowest_of_the_largest) {
  for (const Kernels* k : available_kernels()) {
    for (std::size_t n = 1; n <= kMostSize; ++n) {
      for (std::size_t at = 0; at < n; ++at) {
        Guarded<float> x(std::vector<float>(n, -3));
        x[at] = -1;
        x[n - 1] = -1;
        EXPECT_EQ(k->argmax(x.data(), n), at) << k->name << " n " << n;
      }
    }
  }
}

TEST(Targets, exp_sum_has_the_scalar_bits_and_the_right_value) {
  expect_same_bits([](const Kernels& k, std::size_t n) {
    Guarded<float> x(wide_range(n, n));
    float most = *std::max_element(x.data(), x.data() + n);
    double want = 0;
    for (std::size_t i = 0; i < n; ++i) {
      want += std::exp(double{x[i]} - most);
    }
    float sum = k.exp_sum(x.data(), n, most);
    EXPECT_NEAR(sum, want, 1e-5 * want);
    return std::vector<float>{sum};
  });
}

}  // namespace
}  // namespace afterglow
