#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kv/block.h"

namespace afterglow::kv {

/// A block's file, as the store reports it.
struct DiskBlock {
  BlockPtr block;
  std::uint64_t file_bytes = 0;
  std::int64_t last_use_ns = 0;
};

/// Blocks on disk whose parent is unknown; they wait for it, at most `limit`
/// of them: the ones used longest ago make room.
/// Thread: one at a time.
class Orphans {
 public:
  explicit Orphans(std::size_t limit) : limit_(limit) {}

  void add(DiskBlock disk);
  std::optional<DiskBlock> take(const BlockId& id);
  std::vector<DiskBlock> take_children(const BlockId& parent);
  /// The one used longest ago, or one of its orphaned descendants that has
  /// no orphaned child; null when there are none.
  const DiskBlock* oldest_leaf() const;

  bool has(const BlockId& id) const { return blocks_.contains(id); }
  std::size_t size() const { return blocks_.size(); }
  std::uint64_t bytes() const { return bytes_; }
  /// Appends all ids.
  void list(std::vector<BlockId>& ids) const;

 private:
  std::size_t limit_;
  std::uint64_t bytes_ = 0;
  std::unordered_map<BlockId, DiskBlock, BlockIdHash> blocks_;
  std::unordered_multimap<BlockId, BlockId, BlockIdHash> by_parent_;
  std::set<std::pair<std::int64_t, BlockId>> by_age_;
};

}  // namespace afterglow::kv
