#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace afterglow {

/// How often something took how long.
struct DurationHistogram {
  /// Seconds; count i is of what took no longer than bound i, but longer than
  /// the one before; the last count of what took longer than all.
  static constexpr std::array<double, 14> kBounds = {
      0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300};

  std::array<std::uint64_t, kBounds.size() + 1> counts{};
  double sum = 0;  // seconds

  void add(double seconds) {
    const auto bound =
        std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
    ++counts[static_cast<std::size_t>(bound - kBounds.begin())];
    sum += seconds;
  }
};

}  // namespace afterglow
