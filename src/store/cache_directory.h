#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "store/cache_directory_contents.h"
#include "store/cache_directory_plan.h"
#include "store/disk_lock.h"

namespace afterglow {

/// What prune or clear took away.
struct Removal {
  std::vector<RemovedEntry> entries;  // those that went or became shorter
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;
  /// Of the block files of the chosen models that stayed.
  std::uint64_t left_bytes = 0;
  /// Files that could not be unlinked, and why not.
  std::vector<Error> failures;
};

/// A prompt-cache directory for tools: needs no model, and is safe while
/// servers run, whose order of locks and unlinking it keeps.
/// Thread: one thread at a time.
class CacheDirectory {
 public:
  /// Opens a directory that is there; makes nothing.
  /// Errors: kNotFound, kPermission (another user's), kInvalidArgument (no
  /// cache of ours), kUnsupported (a later version's); each says what to do.
  static Result<CacheDirectory> open(const std::string& path);
  /// The same below a file system. `path` is for messages.
  static Result<CacheDirectory> open(
      std::unique_ptr<FileSystem> files, const std::string& path
  );

  FileSystem& files() const { return *files_; }
  const std::string& path() const { return path_; }

  Result<CacheContents> read() const { return read_cache_contents(*files_); }

  /// Folders of the models that `name` means: a name from model.json, or the
  /// first digits (6 or more) of a folder.
  /// Errors: kNotFound, with the names that there are.
  Result<std::vector<std::string>> find_models(
      const CacheContents& contents, const std::string& name
  ) const;

  /// dry_run: only says what would go.
  Result<Removal> prune(const PruneRule& rule, bool dry_run);

  /// Everything, pinned entries too, of some models or (no folders) of all.
  Result<Removal> clear(const std::vector<std::string>& folders);

  /// Pins or unpins the entry of that end, as a use of it now, so that running
  /// servers take over the latest decision. Returns false when it was so
  /// already. Errors: kNotFound when its blocks are gone.
  Result<bool> set_pinned(const StoredEntry& entry, bool pinned);

  /// Waits up to 10 seconds for the directory's lock.
  Result<DiskTransaction> begin() const;

  /// Brings the manifest in line with the files, leaving out some entries.
  /// A manifest of a later version is left alone (kUnsupported).
  /// Requires: the lock is held.
  Status tidy_manifest(
      DiskTransaction& lock,
      const std::function<bool(const ManifestEntry&)>& leave_out = {}
  );

 private:
  CacheDirectory(std::unique_ptr<FileSystem> files, std::string path)
      : files_(std::move(files)), path_(std::move(path)) {}

  Status carry_out(const PrunePlan& plan, Removal& removal);
  Status unlink(
      DiskTransaction& lock,
      const std::vector<Victim>& victims,
      Removal& removal
  );

  std::unique_ptr<FileSystem> files_;
  std::string path_;
};

}  // namespace afterglow
