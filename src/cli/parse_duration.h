#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace afterglow {

/// A span of time: decimal digits and a unit in lower case: s (or none), m, h,
/// d or w. Returns nanoseconds.
/// Errors: kInvalidArgument for other text or more than 200 years.
Result<std::int64_t> parse_duration(const std::string& text);

}  // namespace afterglow
