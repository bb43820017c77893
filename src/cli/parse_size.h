#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace afterglow {

/// A number of bytes: decimal digits, perhaps with a fraction, and a unit in
/// either case: none, K, M, G, T (powers of 1000, also written KB...) or KiB,
/// MiB, GiB, TiB. A fraction of a byte is cut off.
/// Errors: kInvalidArgument for other text or more than 2^64 - 1.
/// Source: mlx_lm.utils._parse_size, which knows "", M, MB, G and GB.
Result<std::uint64_t> parse_size(const std::string& text);

}  // namespace afterglow
