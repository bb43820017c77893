#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "base/result.h"
#include "kv/prompt_cache.h"

namespace afterglow {

/// The index of entries in v1/manifest.json. It can be rebuilt from the block
/// files, so losing it costs the order and the types of entries, no block.
struct ManifestEntry {
  std::string model;  // ModelKey::folder()
  EntryRecord record;
};

struct Manifest {
  std::vector<ManifestEntry> entries;
};

/// Oldest use first.
std::string format_manifest(const Manifest& manifest);

/// Entries that make no sense are left out; last uses in the future become
/// now_ns.
/// Errors: kCorrupt when it is no manifest at all; kUnsupported for another
/// version.
Result<Manifest> parse_manifest(std::string_view text, std::int64_t now_ns);

/// Both manifests' entries: of two with the same end the newer use wins (for
/// the type, the last in the order of eviction; for pinned, the newer
/// decision), and an unpinned user or assistant entry that another entry of the
/// model runs through goes.
Manifest merge_manifests(const Manifest& a, const Manifest& b);

/// Cuts entries of one model to the blocks that are on disk, so that the
/// index never promises more than the data; drops those left empty.
void keep_stored(
    Manifest& manifest,
    const std::string& model,
    const std::set<BlockId>& stored
);

/// Drops unpinned entries whose time to live has passed since their last use.
void drop_expired(Manifest& manifest, std::int64_t now_ns);

/// Errors: kNotFound, as parse_manifest, and those of the file system.
Result<Manifest> read_manifest(FileSystem& files);

/// Replaces the file atomically and durably.
/// Requires: the caller holds the directory's lock.
Status write_manifest(FileSystem& files, const Manifest& manifest);

}  // namespace afterglow
