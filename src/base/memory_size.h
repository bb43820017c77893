#pragma once

#include <cstdint>

namespace afterglow {

// Thread: any.

/// The machine's memory in bytes.
std::uint64_t physical_memory();

/// The most memory the process had resident so far, in bytes; 0: unknown.
std::uint64_t peak_memory();
/// Begins anew with what is resident now, where the system can do that.
void reset_peak_memory();

}  // namespace afterglow
