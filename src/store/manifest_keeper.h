#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "store/block_index.h"
#include "store/context.h"
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

  /// Merges the cache's entries into the file. Returns the bytes written, 0
  /// when it had them all.
  Result<std::uint64_t> save();

 private:
  struct Seen {
    std::uint64_t inode = 0;
    std::int64_t mtime_ns = 0;
    bool operator==(const Seen&) const = default;
  };

  std::optional<Seen> look();
  void date_by_file(EntryRecord& record);
  Result<std::set<BlockId>> stored_blocks();

  StoreContext& context_;
  BlockIndex& index_;
  std::mutex mutex_;
  std::optional<Seen> seen_;  // guarded by mutex_
  bool warned_ = false;       // guarded by mutex_
};

}  // namespace afterglow
