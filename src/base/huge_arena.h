#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/aligned_buffer.h"

namespace afterglow {

/// Cuts long-lived arrays out of large mappings, so that those smaller than a
/// huge page lie in huge pages, too. Freed as a whole; what was not yet
/// handed out has cost address space only.
/// Thread: one thread.
class HugeArena {
 public:
  /// An array of so many bytes, aligned to a cache line, uninitialized.
  /// Throws std::bad_alloc when the system has no memory for it.
  std::byte* take(std::size_t bytes) {
    std::size_t rounded = (bytes + kLine - 1) / kLine * kLine;
    if (left_ < rounded) {
      left_ = std::max(rounded, kMapping);
      mappings_.emplace_back(left_);
    }
    AlignedBuffer& mapping = mappings_.back();
    std::byte* array = mapping.data() + mapping.size() - left_;
    left_ -= rounded;
    return array;
  }

 private:
  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kMapping = std::size_t{64} << 20;

  std::vector<AlignedBuffer> mappings_;
  std::size_t left_ = 0;  // of the last one
};

}  // namespace afterglow
