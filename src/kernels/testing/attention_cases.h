#pragma once

#include <algorithm>

#include "kernels/half.h"
#include "kernels/testing/kernel_case.h"

namespace afterglow::test {

template <>
struct KernelCase<&Kernels::attend_page> {
  template <class T>
  static std::vector<T> elements(
      std::size_t n, Random& random, T (*convert)(float)
  ) {
    std::vector<T> result(n);
    for (T& x : result) x = convert(random.unit());
    return result;
  }

  /// K and V end where the last key in sight does.
  template <class T>
  static void run_page(
      const Kernels& k,
      std::size_t n,
      Random& random,
      Output& out,
      T (*convert)(float)
  ) {
    std::size_t keys = std::min<std::size_t>(256, n * 8 - random.below(8));
    std::size_t k_dim = n;
    std::size_t v_dim = 16 * (1 + random.below(5));
    std::size_t rows = 1 + random.below(12);
    std::size_t slack = n % 2;
    auto key_values =
        elements<T>((k_dim - 1) * 256 + (keys + 15) / 16 * 16, random, convert);
    Guarded<T> k_memory(key_values, slack);
    Guarded<T> v_memory(elements<T>(keys * v_dim, random, convert), slack);
    std::vector<float> q = random.floats(rows * k_dim, 3);
    std::vector<std::int32_t> first(rows);
    std::vector<std::int32_t> last(rows);
    for (std::size_t r = 0; r < rows; ++r) {
      last[r] = static_cast<std::int32_t>(random.below(keys + 1));
      bool window = random.below(2) == 0;
      first[r] = window ? static_cast<std::int32_t>(random.below(keys)) : 0;
    }
    last[0] = static_cast<std::int32_t>(keys);
    float softcap = n % 3 == 0 ? 20.0f : 0;
    // A table takes as many rows at once as it has room for.
    for (std::size_t r = 0; r < rows; r += k.query_rows) {
      std::size_t count = std::min(k.query_rows, rows - r);
      auto from = static_cast<std::ptrdiff_t>(r * k_dim);
      auto to = static_cast<std::ptrdiff_t>((r + count) * k_dim);
      Guarded<float> queries({q.begin() + from, q.begin() + to});
      Guarded<float> largest(count);
      Guarded<float> sum(count);
      Guarded<float> values(count * v_dim);
      k.attend_page({
          .q = queries.data(),
          .rows = count,
          .k_dim = k_dim,
          .v_dim = v_dim,
          .half = sizeof(T) == 2,
          .k = k_memory.data(),
          .v = v_memory.data(),
          .first = first.data() + r,
          .last = last.data() + r,
          .softcap = softcap,
          .largest = largest.data(),
          .sum = sum.data(),
          .values = values.data(),
      });
      for (std::size_t i = 0; i < count; ++i) {
        out.put(sum[i]);
        if (sum[i] == 0) continue;  // the rest is open
        out.put(largest[i]);
        out.put(values.data() + i * v_dim, v_dim);
      }
    }
  }

  static void run(
      const Kernels& k, std::size_t n, Random& random, Output& out
  ) {
    run_page<std::uint16_t>(k, n, random, out, float_to_half);
    run_page<float>(k, n, random, out, [](float x) { return x; });
  }
};

template <>
struct KernelCase<&Kernels::attend_add> {
  static void run(
      const Kernels& k, std::size_t n, Random& random, Output& out
  ) {
    std::size_t v_dim = 16 * n;
    std::size_t slack = n % 2;
    float largest = 0;
    float sum = 0;
    Guarded<float> total_values(std::vector<float>(v_dim), slack);
    for (int page = 0; page < 5; ++page) {
      Guarded<float> values(random.floats(v_dim), slack);
      // Some pages have no key in sight.
      float page_sum = random.below(3) == 0 ? 0 : 1 + random.unit() * 0.5f;
      float page_largest = random.unit() * (page == 4 ? 200.0f : 5.0f);
      k.attend_add(
          {&largest, &sum, total_values.data()},
          page_largest,
          page_sum,
          values.data(),
          v_dim
      );
      out.put(largest);
      out.put(sum);
      out.put(total_values.data(), v_dim);
    }
  }
};

template <>
struct KernelCase<&Kernels::attend_finish> {
  static void run(
      const Kernels& k, std::size_t n, Random& random, Output& out
  ) {
    std::size_t v_dim = 16 * n;
    float largest = 1;
    float sum = 1 + random.unit() * 0.9f;
    Guarded<float> values(wide_floats(v_dim, random), n % 2);
    Guarded<float> y(std::vector<float>(v_dim), (n + 1) % 2);
    k.attend_finish({&largest, &sum, values.data()}, v_dim, y.data());
    out.put(y.data(), v_dim);
  }
};

}  // namespace afterglow::test
