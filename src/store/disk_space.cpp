#include "store/disk_space.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "store/block_io.h"
#include "store/clock.h"
#include "store/disk_files.h"

namespace afterglow {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kRecountEvery = 600 * kSecond;
constexpr std::int64_t kFindUnclaimedEvery = 60 * kSecond;
constexpr std::uint64_t kDefaultLimit = std::uint64_t{20} << 30;
constexpr std::uint64_t kDefaultShare = 10;  // one part in ten of free space

}  // namespace

Status DiskSpace::recount(DiskTransaction& lock, bool always) {
  std::int64_t now = unix_now_ns();
  std::int64_t age = now - lock.state().counted_at_ns;
  if (!always && age >= 0 && age < kRecountEvery) {
    return {};
  }
  auto used = count_block_bytes(*context_.files);
  if (!used) {
    return used.error();
  }
  DiskState state = lock.state();
  state.used_bytes = *used;
  state.counted_at_ns = now;
  context_.count([&](StoreStats& stats) {
    stats.disk_used_bytes = state.used_bytes;
  });
  return lock.update(state);
}

Status DiskSpace::notice_others(DiskTransaction& lock) {
  std::lock_guard guard(mutex_);
  context_.count([&](StoreStats& stats) {
    stats.disk_used_bytes = lock.state().used_bytes;
  });
  if (knows_epoch_ && seen_epoch_ == lock.state().epoch) {
    return {};
  }
  if (Status looked = forget_missing(); !looked) {
    return looked;
  }
  knows_epoch_ = true;
  seen_epoch_ = lock.state().epoch;
  return {};
}

Status DiskSpace::look_for_others() {
  auto epoch = peek_epoch(*context_.files);
  if (!epoch && epoch.error().code != Code::kNotFound) {
    return epoch.error();
  }
  std::unique_lock guard(mutex_);
  if (!epoch) {
    return forget_missing();  // somebody removed it all
  }
  if (knows_epoch_ && seen_epoch_ == *epoch) {
    return {};
  }
  guard.unlock();
  auto lock = DiskTransaction::begin(*context_.files, [&] {
    return context_.stopping.load();
  });
  return lock ? notice_others(*lock) : Status(lock.error());
}

Status DiskSpace::forget_missing() {
  auto stored = stored_blocks(*context_.files, context_.folder);
  if (!stored && stored.error().code != Code::kNotFound) {
    return stored.error();
  }
  for (const BlockId& id : context_.cache.durable_blocks()) {
    if (!stored || stored->count(id) == 0) {
      context_.cache.forget_disk(id);
    }
  }
  return {};
}

Result<std::uint64_t> DiskSpace::limit(const DiskTransaction& lock) {
  if (context_.options.disk_bytes != 0) {
    return context_.options.disk_bytes;
  }
  auto space = context_.files->free_space();
  if (!space) {
    return space.error();
  }
  // What the cache uses counts as free, or the limit would shrink with use.
  std::uint64_t free = space->free_bytes + lock.state().used_bytes;
  return std::min(kDefaultLimit, free / kDefaultShare);
}

Result<std::uint64_t> DiskSpace::make_room(
    DiskTransaction& lock, std::uint64_t bytes
) {
  auto bound = limit(lock);
  if (!bound) {
    return bound.error();
  }
  context_.count([&](StoreStats& stats) { stats.disk_limit_bytes = *bound; });
  // More than the whole budget never fits; do not empty the disk for it.
  std::uint64_t target = bytes > *bound ? *bound : *bound - bytes;
  if (lock.state().used_bytes > target) {
    std::lock_guard guard(mutex_);
    std::int64_t oldest = std::numeric_limits<std::int64_t>::max();
    for (const EntryRecord& entry : context_.cache.entries()) {
      oldest = std::min(oldest, entry.last_use_ns);
    }
    if (Status found = find_unclaimed(); !found) {
      return found.error();
    }
    evict_unclaimed(lock, oldest, target);
    evict_claimed(lock, target);
    evict_unclaimed(lock, std::numeric_limits<std::int64_t>::max(), target);
  }
  std::uint64_t used = lock.state().used_bytes;
  return used >= *bound ? 0 : *bound - used;
}

Status DiskSpace::raise_epoch(DiskTransaction& lock) {
  bool was_current = knows_epoch_ && seen_epoch_ == lock.state().epoch;
  Status raised = lock.raise_epoch();
  if (was_current) {
    seen_epoch_ = lock.state().epoch;
  }
  return raised;
}

DiskSpace::Unlinked DiskSpace::unlink(
    DiskTransaction& lock, const std::string& name, std::optional<Error>* error
) {
  auto removed = remove_block_file(*context_.files, lock, name);
  context_.count([&](StoreStats& stats) {
    stats.disk_used_bytes = lock.state().used_bytes;
  });
  if (!removed) {
    spdlog::warn("[store.evict] {}", removed.error().message);
    if (error != nullptr) {
      *error = removed.error();
    }
    return Unlinked::kFailed;
  }
  return *removed ? Unlinked::kRemoved : Unlinked::kWasGone;
}

Status DiskSpace::find_unclaimed() {
  std::int64_t now = unix_now_ns();
  if (unclaimed_since_ns_ != 0 && now >= unclaimed_since_ns_ &&
      now - unclaimed_since_ns_ < kFindUnclaimedEvery) {
    return {};
  }
  unclaimed_since_ns_ = now;
  unclaimed_.clear();
  auto folders = model_folders(*context_.files);
  if (!folders) {
    return folders.error();
  }
  for (const std::string& folder : *folders) {
    add_unclaimed(folder);
  }
  // The newest first, parents before children: the back goes first.
  std::sort(
      unclaimed_.begin(),
      unclaimed_.end(),
      [](const Unclaimed& a, const Unclaimed& b) {
        return a.last_use_ns != b.last_use_ns ? a.last_use_ns > b.last_use_ns
                                              : a.start < b.start;
      }
  );
  return {};
}

void DiskSpace::add_unclaimed(const std::string& folder) {
  FileSystem& files = *context_.files;
  auto stored = stored_blocks(files, folder);
  if (!stored) {
    return;
  }
  std::vector<Unclaimed> blocks;
  std::vector<BlockId> parents;
  std::unordered_map<BlockId, std::size_t, BlockIdHash> index;
  for (const BlockId& id : *stored) {
    bool is_ours = folder == context_.folder;
    if (is_ours && context_.cache.is_durable(id)) {
      continue;
    }
    Unclaimed block{block_path(folder, id), is_ours, id};
    auto info = files.info(block.name);
    if (!info || !info->is_regular) {
      continue;
    }
    block.last_use_ns = info->mtime_ns;
    BlockId parent;
    if (auto file = files.open(block.name)) {
      // One that cannot be read is of no use to anyone: its own age decides.
      if (auto head = read_foreign_head(**file)) {
        parent = head->parent;
        block.start = head->start;
      }
    }
    index[id] = blocks.size();
    blocks.push_back(block);
    parents.push_back(parent);
  }
  // A use of a block is a use of all before it; children first.
  std::vector<std::size_t> order(blocks.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return blocks[a].start > blocks[b].start;
  });
  for (std::size_t i : order) {
    auto parent = index.find(parents[i]);
    if (parent != index.end()) {
      std::int64_t& use = blocks[parent->second].last_use_ns;
      use = std::max(use, blocks[i].last_use_ns);
    }
  }
  unclaimed_.insert(unclaimed_.end(), blocks.begin(), blocks.end());
}

void DiskSpace::evict_unclaimed(
    DiskTransaction& lock, std::int64_t used_before_ns, std::uint64_t target
) {
  bool raised = false;
  while (lock.state().used_bytes > target && !unclaimed_.empty() &&
         unclaimed_.back().last_use_ns < used_before_ns) {
    Unclaimed block = std::move(unclaimed_.back());
    unclaimed_.pop_back();
    if (block.is_ours && context_.cache.is_durable(block.id)) {
      continue;  // became known since
    }
    if (!raised && !raise_epoch(lock)) {
      return;
    }
    raised = true;
    if (unlink(lock, block.name) == Unlinked::kRemoved) {
      context_.count([](StoreStats& stats) { ++stats.evicted_blocks.budget; });
    }
  }
}

void DiskSpace::evict_claimed(DiskTransaction& lock, std::uint64_t target) {
  // Files that are gone already free nothing, hence the loop.
  while (lock.state().used_bytes > target) {
    std::vector<BlockId> victims =
        context_.cache.evict_disk(lock.state().used_bytes - target);
    if (victims.empty() || !raise_epoch(lock)) {
      return;
    }
    std::size_t gone = 0;
    for (const BlockId& id : victims) {
      Unlinked unlinked = unlink(lock, context_.file_of(id));
      if (unlinked != Unlinked::kFailed) {
        context_.cache.forget_disk(id);
        ++gone;
      }
      if (unlinked == Unlinked::kRemoved) {
        context_.count([](StoreStats& stats) { ++stats.evicted_blocks.budget; }
        );
      }
    }
    if (gone == 0) {
      return;  // nothing can be unlinked: read-only
    }
  }
}

Result<DiskSpace::Removed> DiskSpace::remove(
    DiskTransaction& lock, std::span<const BlockId> blocks, Reason reason
) {
  std::lock_guard guard(mutex_);
  if (Status raised = raise_epoch(lock); !raised) {
    return raised.error();
  }
  Removed removed;
  for (const BlockId& id : blocks) {
    Unlinked unlinked = unlink(lock, context_.file_of(id), &removed.error);
    if (unlinked == Unlinked::kFailed) {
      removed.left.push_back(id);
    } else {
      context_.cache.forget_disk(id);
    }
    removed.files += unlinked == Unlinked::kRemoved;
  }
  context_.count([&](StoreStats& stats) {
    EvictedBlocks& evicted = stats.evicted_blocks;
    evicted.expired += reason == Reason::kExpired ? removed.files : 0;
    evicted.cleared += reason == Reason::kCleared ? removed.files : 0;
    evicted.superseded += reason == Reason::kSuperseded ? removed.files : 0;
  });
  return removed;
}

Status DiskSpace::adjust_used(DiskTransaction& lock, std::int64_t bytes) {
  Status adjusted = lock.adjust_used(bytes);
  context_.count([&](StoreStats& stats) {
    stats.disk_used_bytes = lock.state().used_bytes;
  });
  return adjusted;
}

}  // namespace afterglow
