#pragma once

#include <cstdint>

#include "afterglow/model.h"
#include "base/memory_size.h"

namespace afterglow {

/// The most bytes that a model loaded so takes with its requests and its
/// cache: what was asked for, else 80 % of what the process may take.
inline std::uint64_t memory_limit_of(const LoadOptions& options) {
  return options.memory_limit.value_or(usable_memory() / 10 * 8);
}

}  // namespace afterglow
