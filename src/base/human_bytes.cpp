#include "base/human_bytes.h"

#include <array>
#include <cstddef>
#include <cstdio>

namespace afterglow {

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array units = {"B", "KB", "MB", "GB", "TB", "PB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 999.95 would be printed as 1000.0 of the smaller unit.
  while (value >= (unit == 0 ? 1000 : 999.95) && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  std::array<char, 32> text;
  std::snprintf(
      text.data(),
      text.size(),
      unit == 0 ? "%.0f %s" : "%.1f %s",
      value,
      units[unit]
  );
  return text.data();
}

}  // namespace afterglow
