#pragma once

#include <cstddef>
#include <cstdint>

namespace afterglow {

/// A token id of the loaded model's vocabulary; valid ids are >= 0.
using Token = std::int32_t;

/// Tokens a KV page holds. Pages start at multiples of this.
inline constexpr std::size_t kPageTokens = 256;

}  // namespace afterglow
