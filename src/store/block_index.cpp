#include "store/block_index.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "store/block_io.h"
#include "store/clock.h"
#include "store/disk_files.h"

namespace afterglow {

void BlockIndex::scan(std::span<const BlockId> first) {
  std::vector<BlockId> order;
  auto stored = stored_blocks(*context_.files, context_.folder);
  if (!stored) {
    if (stored.error().code != Code::kNotFound) {
      spdlog::warn("[store.index] {}", stored.error().message);
    }
    return;
  }
  for (const BlockId& id : first) {
    if (stored->erase(id) > 0) {
      order.push_back(id);
    }
  }
  order.insert(order.end(), stored->begin(), stored->end());
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
  auto head =
      read_twice([&] { return read_block_head(context_.key, id, **file); });
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
