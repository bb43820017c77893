#include "kv/orphans.h"

namespace afterglow::kv {

void Orphans::add(DiskBlock disk) {
  if (limit_ == 0) {
    return;
  }
  take(disk.block->id);
  if (blocks_.size() >= limit_) {
    take(by_age_.begin()->second);
  }
  bytes_ += disk.file_bytes;
  by_parent_.emplace(disk.block->parent, disk.block->id);
  by_age_.emplace(disk.last_use_ns, disk.block->id);
  blocks_.emplace(disk.block->id, std::move(disk));
}

std::optional<DiskBlock> Orphans::take(const BlockId& id) {
  auto it = blocks_.find(id);
  if (it == blocks_.end()) {
    return std::nullopt;
  }
  DiskBlock disk = std::move(it->second);
  blocks_.erase(it);
  bytes_ -= disk.file_bytes;
  by_age_.erase({disk.last_use_ns, disk.block->id});
  auto [child, end] = by_parent_.equal_range(disk.block->parent);
  while (child != end && child->second != disk.block->id) {
    ++child;
  }
  by_parent_.erase(child);
  return disk;
}

std::vector<DiskBlock> Orphans::take_children(const BlockId& parent) {
  std::vector<DiskBlock> children;
  for (auto it = by_parent_.find(parent); it != by_parent_.end();
       it = by_parent_.find(parent)) {
    BlockId child = it->second;
    children.push_back(*take(child));
  }
  return children;
}

const DiskBlock* Orphans::oldest_leaf() const {
  if (by_age_.empty()) {
    return nullptr;
  }
  BlockId id = by_age_.begin()->second;
  for (auto it = by_parent_.find(id); it != by_parent_.end();
       it = by_parent_.find(id)) {
    id = it->second;
  }
  return &blocks_.at(id);
}

void Orphans::list(std::vector<BlockId>& ids) const {
  for (const auto& [id, disk] : blocks_) {
    ids.push_back(id);
  }
}

}  // namespace afterglow::kv
