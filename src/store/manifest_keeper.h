#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "store/block_index.h"
#include "store/context.h"
#include "store/disk_lock.h"
#include "store/disk_space.h"
#include "store/manifest.h"

namespace afterglow {

/// Brings the cache's entries and v1/manifest.json together, both ways.
/// Thread: safe from any thread.
class ManifestKeeper {
 public:
  ManifestKeeper(StoreContext& context, BlockIndex& index)
      : context_(context), index_(index) {}

  /// Gives the manifest's entries to the cache; returns the blocks they run
  /// through, those of the latest uses first.
  std::vector<BlockId> load();

  /// The same if another process replaced the manifest since, and indexes
  /// blocks that are new in it.
  void load_if_changed();

  /// Merges the cache's entries and the file's, both ways. Returns the bytes
  /// written, 0 when the file had it all. Before, blocks that others removed
  /// are noticed.
  Result<std::uint64_t> save(DiskSpace& space);
  /// The same within a transaction; what others added to the file is indexed
  /// with the next load_if_changed or save.
  Result<std::uint64_t> save(DiskTransaction& lock);

  /// Takes the entry out of the file, which would bring it back otherwise as
  /// long as its blocks are there. Requires: the cache has it no more.
  Status forget(const EntryRecord& entry);

 private:
  struct Seen {
    std::uint64_t inode = 0;
    std::int64_t mtime_ns = 0;
    bool operator==(const Seen&) const = default;
  };

  std::optional<Seen> look();
  void date_by_file(EntryRecord& record);
  /// Gives the entries of this model to the cache; returns them.
  std::vector<EntryRecord> take_over(const Manifest& manifest);
  /// Takes over what others decided; its blocks wait to be indexed.
  /// Requires: mutex_ is held.
  void hear(const Manifest& manifest);
  void index_news();
  /// Writes the file; its text has that many bytes. Requires: mutex_ is held.
  Result<std::uint64_t> replace(
      DiskTransaction& lock, const Manifest& manifest, std::uint64_t bytes
  );

  StoreContext& context_;
  BlockIndex& index_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::optional<Seen> seen_;
  std::vector<BlockId> news_;  // of entries taken over, perhaps not indexed
  bool warned_ = false;
};

}  // namespace afterglow
