#include "kernels/attention/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
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

constexpr std::size_t kKeys = 256;

// A head's page with `keys` keys written; the rest holds NaN, which would
// show in any result that it reaches. K has the zeros up to the next 16.
template <class T>
struct HeadPage {
  std::vector<T> k, v;
  std::vector<double> k_exact, v_exact;

  HeadPage(
      std::size_t k_dim, std::size_t v_dim, std::size_t keys, Random& random
  )
      : k(k_dim * kKeys),
        v(kKeys * v_dim),
        k_exact(k.size()),
        v_exact(v.size()) {
    std::size_t padded = (keys + 15) / 16 * 16;
    for (std::size_t d = 0; d < k_dim; ++d) {
      for (std::size_t i = 0; i < kKeys; ++i) {
        float x = i < keys ? random.unit() : i < padded ? 0.0f : NAN;
        put(x, k[d * kKeys + i], k_exact[d * kKeys + i]);
      }
    }
    for (std::size_t i = 0; i < kKeys; ++i) {
      for (std::size_t d = 0; d < v_dim; ++d) {
        put(i < keys ? random.unit() : NAN,
            v[i * v_dim + d],
            v_exact[i * v_dim + d]);
      }
    }
  }

  static void put(float x, std::uint16_t& out, double& exact) {
    out = float_to_half(x);
    exact = half_to_float(out);
  }
  static void put(float x, float& out, double& exact) {
    out = x;
    exact = x;
  }
};

struct Partial {
  std::vector<float> largest, sum, values;
};

template <class T>
Partial run(
    const Kernels& kernels,
    const HeadPage<T>& page,
    const std::vector<float>& q,
    std::size_t k_dim,
    std::size_t v_dim,
    const std::vector<std::int32_t>& first,
    const std::vector<std::int32_t>& last,
    float softcap
) {
  std::size_t rows = first.size();
  Partial p;
  p.largest.resize(rows);
  p.sum.resize(rows);
  p.values.resize(rows * v_dim);
  // In pieces of what the table takes at once.
  for (std::size_t r = 0; r < rows; r += kernels.query_rows) {
    std::size_t n = std::min(kernels.query_rows, rows - r);
    Guarded<float> queries(std::vector<float>(
        q.begin() + static_cast<long>(r * k_dim),
        q.begin() + static_cast<long>((r + n) * k_dim)
    ));
    Guarded<float> values(n * v_dim);
    kernels.attend_page({
        .q = queries.data(),
        .rows = n,
        .k_dim = k_dim,
        .v_dim = v_dim,
        .half = sizeof(T) == 2,
        .k = page.k.data(),
        .v = page.v.data(),
        .first = first.data() + r,
        .last = last.data() + r,
        .softcap = softcap,
        .largest = p.largest.data() + r,
        .sum = p.sum.data() + r,
        .values = values.data(),
    });
    std::memcpy(
        p.values.data() + r * v_dim, values.data(), n * v_dim * sizeof(float)
    );
  }
  return p;
}

template <class T>
void check_row(
    const HeadPage<T>& page,
    const float* q,
    std::size_t k_dim,
    std::size_t v_dim,
    std::int32_t first,
    std::int32_t last,
    float softcap,
    float sum,
    const float* values
) {
  if (first >= last) {
    EXPECT_EQ(sum, 0);
    return;
  }
  std::vector<double> weights;
  double most = -INFINITY;
  for (std::int32_t i = first; i < last; ++i) {
    double score = 0;
    for (std::size_t d = 0; d < k_dim; ++d) {
      score += q[d] * page.k_exact[d * kKeys + i];
    }
    if (softcap != 0) {
      score = softcap * std::tanh(score / softcap);
    }
    weights.push_back(score);
    most = std::max(most, score);
  }
  double total = 0;
  std::vector<double> want(v_dim);
  for (std::int32_t i = first; i < last; ++i) {
    double w = std::exp(weights[i - first] - most);
    total += w;
    for (std::size_t d = 0; d < v_dim; ++d) {
      want[d] += w * page.v_exact[i * v_dim + d];
    }
  }
  EXPECT_NEAR(sum, total, 1e-5 * total);
  for (std::size_t d = 0; d < v_dim; ++d) {
    EXPECT_NEAR(values[d], want[d], 1e-5 * total);
  }
}

template <class T>
void check_pages() {
  Random random(sizeof(T));
  for (int round = 0; round < 60; ++round) {
    std::size_t k_dim = 1 + random.below(80);
    std::size_t v_dim = 16 * (1 + random.below(6));
    std::size_t keys = 1 + random.below(kKeys);
    std::size_t rows = 1 + random.below(14);
    float softcap = random.below(3) == 0 ? 5.0f : 0.0f;
    HeadPage<T> page(k_dim, v_dim, keys, random);
    std::vector<float> q = random.floats(rows * k_dim, 2);
    std::vector<std::int32_t> first(rows);
    std::vector<std::int32_t> last(rows);
    for (std::size_t r = 0; r < rows; ++r) {
      last[r] = static_cast<std::int32_t>(random.below(keys + 1));
      bool window = random.below(2) == 0 && last[r] > 0;
      first[r] = window ? static_cast<std::int32_t>(random.below(last[r])) : 0;
    }
    const Kernels& scalar = *available_kernels().front();
    Partial want = run(scalar, page, q, k_dim, v_dim, first, last, softcap);
    for (std::size_t r = 0; r < rows; ++r) {
      check_row(
          page,
          q.data() + r * k_dim,
          k_dim,
          v_dim,
          first[r],
          last[r],
          softcap,
          want.sum[r],
          want.values.data() + r * v_dim
      );
    }
    for (const Kernels* k : available_kernels()) {
      Partial got = run(*k, page, q, k_dim, v_dim, first, last, softcap);
      for (std::size_t r = 0; r < rows; ++r) {
        // Alone, as in decode, a row gets the same as among others.
        Partial alone =
            run(*k,
                page,
                std::vector<float>(
                    q.begin() + static_cast<long>(r * k_dim),
                    q.begin() + static_cast<long>((r + 1) * k_dim)
                ),
                k_dim,
                v_dim,
                {first[r]},
                {last[r]},
                softcap);
        ASSERT_EQ(got.sum[r], want.sum[r]) << k->name;
        ASSERT_EQ(alone.sum[0], want.sum[r]) << k->name;
        if (want.sum[r] == 0) {
          continue;
        }
        ASSERT_EQ(got.largest[r], want.largest[r]) << k->name;
        ASSERT_EQ(alone.largest[0], want.largest[r]) << k->name;
        const float* values = want.values.data() + r * v_dim;
        std::size_t bytes = v_dim * sizeof(float);
        ASSERT_EQ(0, std::memcmp(got.values.data() + r * v_dim, values, bytes))
            << k->name;
        ASSERT_EQ(0, std::memcmp(alone.values.data(), values, bytes))
            << k->name;
      }
    }
  }
}

TEST(Attention, f16_pages_are_near_the_double_loop_and_equal_on_all_targets) {
  check_pages<std::uint16_t>();
}

TEST(Attention, f32_pages_are_near_the_double_loop_and_equal_on_all_targets) {
  check_pages<float>();
}

TEST(Attention, totals_merge_alike_on_all_targets) {
  Random random(9);
  constexpr std::size_t kDim = 48;
  for (int round = 0; round < 200; ++round) {
    std::vector<float> results[8];
    std::size_t target = 0;
    std::vector<float> values = random.floats(4 * kDim);
    std::vector<float> largest = random.floats(4, 30);
    std::vector<float> sums(4);
    double most = -1e9;
    for (int i = 0; i < 4; ++i) {
      sums[i] = random.below(4) == 0 ? 0 : 1 + random.unit() * 0.5f;
      most = sums[i] != 0 ? std::max(most, double{largest[i]}) : most;
    }
    sums[3] = 1;
    most = std::max(most, double{largest[3]});
    for (const Kernels* k : available_kernels()) {
      float total_largest = 0;
      float total_sum = 0;
      Guarded<float> total_values(kDim);
      AttendTotal total{&total_largest, &total_sum, total_values.data()};
      for (int i = 0; i < 4; ++i) {
        k->attend_add(total, largest[i], sums[i], &values[i * kDim], kDim);
      }
      Guarded<float> out(kDim);
      k->attend_finish(total, kDim, out.data());
      results[target++] = out.copy();
      ASSERT_TRUE(test::same_bits(results[0], out.copy())) << k->name;
    }
    for (std::size_t d = 0; d < kDim; ++d) {
      double sum = 0;
      double value = 0;
      for (int i = 0; i < 4; ++i) {
        if (sums[i] != 0) {
          double w = std::exp(largest[i] - most);
          sum += w * sums[i];
          value += w * values[i * kDim + d];
        }
      }
      ASSERT_NEAR(results[0][d], value / sum, 1e-5);
    }
  }
}

}  // namespace
}  // namespace afterglow
