#pragma once

#include <cstdint>
#include <string>

#include "afterglow/types.h"
#include "base/result.h"

namespace afterglow {

/// Changes whenever the bits of KV or logits of the CPU backend do. Part of
/// every cached block's identity.
inline constexpr std::uint32_t kNumerics = 1;

Result<Activations> parse_activations(const std::string& text);

}  // namespace afterglow
