#pragma once

#include <sys/stat.h>

#include <cstdint>

namespace afterglow {

// What differs between Linux and macOS below the POSIX file system. Each
// returns -1 with errno where the system call does.

/// openat that leaves no directory and follows no symbolic link at all;
/// ENOSYS where the system has no such call.
int platform_open_beneath(int root, const char* name, int flags, mode_t mode);
/// Makes a file's data and length durable.
int platform_sync_data(int fd);
/// Makes a directory's names durable.
int platform_sync_directory(int fd);
/// True when the file system lies on another machine.
bool platform_is_network(int fd);
/// Time of the last write, Unix time in nanoseconds.
std::int64_t platform_mtime_ns(const struct stat& status);

}  // namespace afterglow
