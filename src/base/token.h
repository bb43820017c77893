#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "afterglow/types.h"

namespace afterglow {

/// Tokens a KV page holds. Pages start at multiples of this.
inline constexpr std::size_t kPageTokens = 256;

/// Pages that so many tokens begin.
constexpr std::size_t pages_for(std::size_t tokens) {
  return (tokens + kPageTokens - 1) / kPageTokens;
}

/// How many tokens two lists begin with alike.
inline std::size_t shared_prefix(
    std::span<const Token> a, std::span<const Token> b
) {
  auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(end.first - a.begin());
}

}  // namespace afterglow
