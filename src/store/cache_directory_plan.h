#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/cache_directory_contents.h"

namespace afterglow {

/// What prune takes away. Pinned entries stay in any case; entries whose time
/// to live has passed go in any case.
struct PruneRule {
  /// Folders of models to look at; empty: all.
  std::vector<std::string> folders;
  /// Entries that were not used for this long go; 0: all that are not pinned.
  std::optional<std::int64_t> unused_for_ns;
  /// Then, by the rule of eviction, as much as makes the rest fit.
  std::optional<std::uint64_t> max_bytes;
};

struct RemovedEntry {
  EntryRecord record;           // as it was
  std::string model;            // its name
  std::uint64_t bytes = 0;      // that were given up for it
  std::size_t tokens_left = 0;  // that are still there; 0: none
};

/// A block file to unlink.
struct Victim {
  std::string folder;
  BlockId id;
  std::uint64_t bytes = 0;
};

/// Where an entry ends: two entries of one model with the same end are one.
using EntryEnd = std::pair<BlockId, std::size_t>;
EntryEnd end_of(const EntryRecord& record);

struct PrunePlan {
  std::vector<Victim> victims;        // in the order to unlink them
  std::vector<RemovedEntry> entries;  // that go or become shorter
  std::set<EntryEnd> dropped;         // of those, the ones that go
  std::uint64_t left_bytes = 0;       // of block files that stay
};

/// Decides by the prompt cache's own rules; touches no file.
PrunePlan plan_prune(const CacheContents& contents, const PruneRule& rule);

}  // namespace afterglow
