#pragma once

#include <cstdint>
#include <string>

#include "base/human_bytes.h"

namespace afterglow {

/// A span of time for people, in its largest unit: "0 s", "59 s", "3 min",
/// "5 h", "12 d". Negative spans are "0 s".
std::string human_span(std::int64_t ns);

/// "1 block", "2 blocks", "1 entry", "2 entries".
std::string human_count(std::uint64_t count, const std::string& noun);

/// Local time: "2025-03-01 17:04:59".
std::string human_time(std::int64_t unix_ns);

}  // namespace afterglow
