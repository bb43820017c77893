#pragma once

#include <cstdint>
#include <span>

#include "base/kv_layout.h"

namespace afterglow {

/// Converts one element; exact where the target has the value, else rounded
/// to nearest, ties to even. `bits`: the element's, in the low bytes.
/// False when the value is not finite, or not in the target's range.
bool convert_kv(
    KvType from, std::uint32_t bits, KvType to, std::uint32_t& result
);

/// The value of an element.
float kv_value(KvType type, std::uint32_t bits);

}  // namespace afterglow
