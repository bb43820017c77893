#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/dispatch/kernel_table.h"
#include "kernels/testing/guarded.h"
#include "kernels/testing/random.h"

namespace afterglow::test {

/// Runs one kernel of a table, so that tables can be compared. A kernel without
/// a specialization does not compile in every_kernel_test.cpp. Each has
///   static void run(const Kernels& k, std::size_t n, Random& random, Output&);
/// which makes its arguments from `random`, of a size that follows from n in
/// 1.., and puts all that the kernel wrote into the output.
template <auto Kernel>
struct KernelCase;

/// What kernels wrote, byte by byte; a NaN is a NaN, whatever it carries.
class Output {
 public:
  template <class T>
  void put(const T* values, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) put(values[i]);
  }
  template <class T>
  void put(const Guarded<T>& values) {
    put(values.data(), values.size());
  }
  template <class T>
  void put(T value) {
    append(&value, sizeof value);
  }
  void put(float value) {
    value = std::isnan(value) ? NAN : value;
    append(&value, sizeof value);
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  void append(const void* data, std::size_t n) {
    auto* p = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), p, p + n);
  }
  std::vector<std::byte> bytes_;
};

/// Magnitudes from 2^-9 to 2^8, both signs.
inline std::vector<float> wide_floats(std::size_t n, Random& random) {
  std::vector<float> x = random.floats(n);
  for (float& value : x) {
    value = std::ldexp(value, static_cast<int>(random.below(16)) - 8);
  }
  return x;
}

/// The same with one in eight replaced by what is special about floats.
inline std::vector<float> any_floats(std::size_t n, Random& random) {
  constexpr float kSpecial[] = {
      0.0f,   -0.0f,  1e-40f,   -1e-45f,   1e-30f,    -88.0f,   88.5f,
      -69.0f, -3e38f, 3e38f,    -INFINITY, INFINITY,  NAN,      -NAN,
      65504,  65520,  0x1p31f,  -0x1p31f,  2.5f,      -3.5f,    0x1.8p-25f,
      20.5f,  -1e-8f, 0x1p-24f, 6e-5f,     0x1p-149f, 1.17e-38f};
  std::vector<float> x = wide_floats(n, random);
  for (float& value : x) {
    if (random.below(8) == 0)
      value = kSpecial[random.below(std::size(kSpecial))];
  }
  return x;
}

}  // namespace afterglow::test
