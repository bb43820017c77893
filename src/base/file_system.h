#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace afterglow {

struct FileInfo {
  std::uint64_t bytes = 0;
  std::int64_t mtime_ns = 0;  // since the Unix epoch
  std::uint64_t inode = 0;    // equal for two names of one file
  bool is_directory = false;
  bool is_regular = false;
};

struct FreeSpace {
  std::uint64_t free_bytes = 0;  // to an unprivileged writer
  std::uint64_t total_bytes = 0;
};

/// An open file. Closing releases its lock.
/// Thread: read_at from several threads at once; the rest from one at a time.
class File {
 public:
  virtual ~File() = default;

  /// Reads up to out.size() bytes; fewer only at the end of the file.
  virtual Result<std::size_t> read_at(
      std::uint64_t offset, std::span<std::byte> out
  ) const = 0;
  /// Writes all of data, or fails.
  virtual Status write_at(
      std::uint64_t offset, std::span<const std::byte> data
  ) = 0;
  /// Makes the data durable (fdatasync; F_FULLFSYNC on macOS). After a
  /// failure the file's content is undefined for good.
  virtual Status sync() = 0;
  virtual Status truncate(std::uint64_t bytes) = 0;
  virtual Result<FileInfo> info() const = 0;
  virtual Status set_mtime(std::int64_t mtime_ns) = 0;

  /// Takes the exclusive advisory lock (flock), waiting for it.
  virtual Status lock() = 0;
  /// The same without waiting: false when another open file holds it.
  virtual Result<bool> try_lock() = 0;
  virtual Status unlock() = 0;
};

/// A directory tree seen from its root. Names are relative, separated by
/// '/', without "." or ".." parts; symbolic links are never followed.
/// Errors: kNotFound, kExists, kNoSpace, kPermission, kExhausted (descriptors
/// or memory), else kIo.
/// Thread: safe from any thread.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  /// Opens for reading; locks and set_mtime work too.
  virtual Result<std::unique_ptr<File>> open(std::string_view name) = 0;
  /// Creates the file for writing, mode 0600; kExists if it is there.
  virtual Result<std::unique_ptr<File>> create(std::string_view name) = 0;
  /// Opens for reading and writing, creating it if missing.
  virtual Result<std::unique_ptr<File>> open_or_create(std::string_view name
  ) = 0;
  /// Creates a directory, mode 0700; success if it is there.
  virtual Status make_directory(std::string_view name) = 0;
  /// Gives the file a second name; kExists if `to` is there.
  virtual Status link(std::string_view from, std::string_view to) = 0;
  /// Moves `from` to `to`, replacing it.
  virtual Status rename(std::string_view from, std::string_view to) = 0;
  virtual Status remove(std::string_view name) = 0;
  virtual Result<FileInfo> info(std::string_view name) = 0;
  /// Names in a directory ("" is the root), unordered.
  virtual Result<std::vector<std::string>> list(std::string_view name) = 0;
  /// Makes created, linked, renamed and removed names durable.
  virtual Status sync_directory(std::string_view name) = 0;
  virtual Result<FreeSpace> free_space() = 0;
  /// True on a file system of another machine (NFS, SMB, ...), whose locks
  /// and syncs may promise less.
  virtual bool is_network() const { return false; }
};

/// Checks a name against FileSystem's rules; "" passes only as a directory.
/// Errors: kPermission, naming the operation and the name.
Status check_file_name(
    std::string_view operation, std::string_view name, bool may_be_root
);

/// Opens (creating it with mode 0700 if missing) the directory at path.
/// Errors: kPermission when it is not owned by this user or others may write
/// to it; the message says which and what to type.
/// use_openat2 false: walk names part by part, as on systems without openat2.
Result<std::unique_ptr<FileSystem>> open_posix_file_system(
    const std::string& path, bool use_openat2 = true
);

/// Opens a file anywhere for reading, as the user typed its path: symbolic
/// links count. Errors: as FileSystem::open; kPermission also for what is not
/// a regular file.
Result<std::unique_ptr<File>> open_user_file(const std::string& path);

/// Puts a whole file, mode 0600, in the place of `path`, wherever that is:
/// `write` fills a temporary beside it, which is synced and renamed, and the
/// directory is synced. After an error `path` is as it was.
/// Errors: those of write and of the file system.
Status replace_user_file(
    const std::string& path, const std::function<Status(File&)>& write
);

}  // namespace afterglow
