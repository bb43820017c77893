#pragma once

#include <cstdint>
#include <string>

namespace afterglow {

/// A number of bytes for people, in powers of 1000: "512 B", "5.9 MB",
/// "20.0 GB".
std::string human_bytes(std::uint64_t bytes);

}  // namespace afterglow
