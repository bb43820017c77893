#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/file_system.h"
#include "kv/prompt_cache.h"
#include "store/manifest.h"

namespace afterglow {

/// A block file, seen from outside.
struct StoredBlock {
  BlockPtr block;              // null: its head cannot be used
  std::optional<Error> error;  // why not
  std::uint64_t bytes = 0;
  std::int64_t mtime_ns = 0;
};

struct StoredModel {
  std::string folder;
  std::string name;  // from model.json; empty when that says nothing
  std::unordered_map<BlockId, StoredBlock, BlockIdHash> blocks;
  std::uint64_t bytes = 0;  // of all its block files

  const StoredBlock* find(const BlockId& id) const;
};

struct StoredEntry {
  const StoredModel* model = nullptr;
  EntryRecord record;
  /// False for one made here, for blocks that no entry of the manifest covers.
  bool listed = true;
  std::uint64_t bytes = 0;      // of its block files
  std::uint64_t own_bytes = 0;  // of those that no other entry runs through

  /// Unix time at which it expires; 0: never.
  std::int64_t expires_at_ns() const;
};

/// What lies in a cache directory at one moment, by heads, names and index;
/// KV is not read.
struct CacheContents {
  std::vector<std::unique_ptr<StoredModel>> models;  // by name, then folder
  std::vector<StoredEntry> entries;                  // the latest use first
  Manifest manifest;  // cut to the blocks that are there and usable
  /// Why there is none although there should be.
  std::optional<Error> manifest_error;
  /// Whole blocks that cannot be reached from a prompt's start, since a block
  /// before them is missing: of no use until that is computed again.
  std::vector<BlockId> orphans;

  std::uint64_t bytes() const;
  std::size_t blocks() const;
  /// The model whose folder holds the block, or null.
  const StoredModel* model_of(const BlockId& block) const;
};

/// Errors: those of the file system on v1. What vanishes while this reads is
/// left out; a file that cannot be read is among the blocks with its error.
Result<CacheContents> read_cache_contents(FileSystem& files);

/// The contents, or those of the chosen models, as a cache that knows all of
/// it to be on disk: the one who decides what is evicted.
std::unique_ptr<PromptCache> make_tree(
    const CacheContents& contents,
    const std::vector<const StoredModel*>& models,
    CacheLimits limits
);

}  // namespace afterglow
