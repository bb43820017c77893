#pragma once

#include <cstdint>
#include <filesystem>

namespace afterglow {

// Thread: any.

/// The machine's memory in bytes.
std::uint64_t physical_memory();

/// What the process may take of it, in bytes: no more than what its control
/// group (Linux), which containers and services run in, or one above allows.
std::uint64_t usable_memory();

/// The least limit of memory in bytes among the process's control group and
/// those above; the largest number there is where none is set. Versions 1 and
/// 2. `root`: the folder that /proc and /sys are below.
/// Source: the kernel's Documentation/admin-guide/cgroup-v{1,2}
std::uint64_t control_group_memory(const std::filesystem::path& root = "/");

/// The most memory the process had resident so far, in bytes; 0: unknown.
std::uint64_t peak_memory();
/// Begins anew with what is resident now, where the system can do that.
void reset_peak_memory();

}  // namespace afterglow
