#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace afterglow::test {

/// A small generator with a fixed sequence for each seed.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 2 + 1) {}
  std::uint32_t next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state_ >> 33);
  }
  /// In [0, n).
  std::size_t below(std::size_t n) { return next() % n; }
  /// In [-1, 1).
  float unit() { return static_cast<float>(next()) * 0x1p-30f - 1; }
  std::vector<float> floats(std::size_t n, float scale = 1) {
    std::vector<float> result(n);
    for (float& x : result) {
      x = unit() * scale;
    }
    return result;
  }

 private:
  std::uint64_t state_;
};

}  // namespace afterglow::test
