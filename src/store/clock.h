#pragma once

#include <chrono>
#include <cstdint>

namespace afterglow {

/// Unix time in nanoseconds.
inline std::int64_t unix_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch()
  )
      .count();
}

}  // namespace afterglow
