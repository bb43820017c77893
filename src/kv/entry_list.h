#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kv/prompt_cache.h"

namespace afterglow {

/// An entry beside the others of a list, for people to look at.
struct ListedEntry {
  EntryRecord record;
  std::size_t ram_blocks = 0;   // of its path
  std::size_t disk_blocks = 0;  // durable
  std::uint64_t bytes = 0;      // of all its blocks, each counted once
  /// Its place in the order of tokens, below one root after the other.
  std::size_t order = 0;
  /// Leading tokens it has in common with the one before in that order, and
  /// so the most it shares with any before.
  std::size_t shared_tokens = 0;
};

/// What orders an entry: blocks[i] is that of record.path[i].
struct EntryBlocks {
  ListedEntry listed;
  std::vector<BlockPtr> blocks;
};

/// Sets order and shared_tokens. Keeps the list's own order.
/// Cost: n log n comparisons, each of a path's ids and one block's tokens.
std::vector<ListedEntry> place_in_order(std::vector<EntryBlocks> entries);

}  // namespace afterglow
