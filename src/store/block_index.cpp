#include "store/block_index.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <unordered_set>

#include "store/block_io.h"
#include "store/clock.h"

namespace afterglow {

void BlockIndex::scan(std::span<const BlockId> first) {
  std::vector<BlockId> order;
  std::unordered_set<BlockId, BlockIdHash> stored;
  auto found = context_.files->list(context_.blocks);
  if (!found) {
    if (found.error().code != Code::kNotFound) {
      spdlog::warn("[store.index] {}", found.error().message);
    }
    return;
  }
  for (const std::string& name : *found) {
    if (auto id = parse_block_file_name(name)) {
      stored.insert(*id);
    }
  }
  for (const BlockId& id : first) {
    if (stored.erase(id) > 0) {
      order.push_back(id);
    }
  }
  order.insert(order.end(), stored.begin(), stored.end());
  for (const BlockId& id : order) {
    if (context_.stopping) {
      return;
    }
    add(id);
  }
}

bool BlockIndex::add(const BlockId& id) {
  if (context_.cache.is_durable(id)) {
    return true;
  }
  auto file = context_.files->open(context_.file_of(id));
  if (!file) {
    return false;  // missing, or out of reach for now: skipped and kept
  }
  auto info = (*file)->info();
  auto head = read_block_head(context_.key, id, **file);
  if (!head && head.error().code == Code::kCorrupt) {
    head = read_block_head(context_.key, id, **file);
  }
  if (!head || !info) {
    if (!head && head.error().code == Code::kCorrupt) {
      damage_.confirm(id, head.error());
    }
    return false;
  }
  std::int64_t last_use = std::min(info->mtime_ns, unix_now_ns());
  context_.cache.add_disk_block(head->block, head->file_bytes, last_use);
  context_.count([](StoreStats& stats) { ++stats.indexed_blocks; });
  return true;
}

}  // namespace afterglow
