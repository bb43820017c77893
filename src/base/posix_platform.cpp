#include "base/posix_platform.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#ifdef __APPLE__
#include <sys/mount.h>
#include <sys/param.h>
#else
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#endif

namespace afterglow {

#ifdef __APPLE__

int platform_open_beneath(int, const char*, int, mode_t) {
  errno = ENOSYS;
  return -1;
}

// fsync alone leaves the data in the drive's cache there.
int platform_sync_data(int fd) {
  return ::fcntl(fd, F_FULLFSYNC);
}

int platform_sync_directory(int fd) {
  return ::fcntl(fd, F_FULLFSYNC);
}

bool platform_is_network(int fd) {
  struct statfs status;
  return ::fstatfs(fd, &status) == 0 && (status.f_flags & MNT_LOCAL) == 0;
}

std::int64_t platform_mtime_ns(const struct stat& status) {
  return std::int64_t{status.st_mtimespec.tv_sec} * 1'000'000'000 +
         status.st_mtimespec.tv_nsec;
}

#else

int platform_open_beneath(int root, const char* name, int flags, mode_t mode) {
  struct open_how how = {};
  how.flags = static_cast<unsigned>(flags);
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  return static_cast<int>(::syscall(SYS_openat2, root, name, &how, sizeof how));
}

int platform_sync_data(int fd) {
  return ::fdatasync(fd);
}

int platform_sync_directory(int fd) {
  return ::fsync(fd);
}

bool platform_is_network(int fd) {
  struct statfs status;
  if (::fstatfs(fd, &status) < 0) {
    return false;
  }
  // Source: statfs(2), the magic numbers of NFS, SMB, CIFS, SMB2, 9P, Ceph,
  // AFS and Lustre.
  switch (static_cast<std::uint32_t>(status.f_type)) {
    case 0x6969:
    case 0x517B:
    case 0xFF534D42:
    case 0xFE534D42:
    case 0x01021997:
    case 0x00C36400:
    case 0x5346414F:
    case 0x0BD00BD0:
      return true;
    default:
      return false;
  }
}

std::int64_t platform_mtime_ns(const struct stat& status) {
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 +
         status.st_mtim.tv_nsec;
}

#endif

}  // namespace afterglow
