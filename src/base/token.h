#pragma once

#include <cstddef>

#include "afterglow/types.h"

namespace afterglow {

/// Tokens a KV page holds. Pages start at multiples of this.
inline constexpr std::size_t kPageTokens = 256;

}  // namespace afterglow
