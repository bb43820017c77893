#include "store/clear.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "store/block_io.h"
#include "store/disk_files.h"

namespace afterglow {

namespace {

using IdSet = std::unordered_set<BlockId, BlockIdHash>;

/// A block file of this model that the cache does not know.
struct Stranger {
  BlockId id;
  BlockId parent;
  std::uint64_t start = 0;
};

/// Children before parents. Files that cannot be read come last.
Result<std::vector<Stranger>> find_strangers(StoreContext& context) {
  auto stored = stored_blocks(*context.files, context.folder);
  if (!stored) {
    return stored.error();
  }
  IdSet known;
  for (const BlockId& id : context.cache.durable_blocks()) {
    known.insert(id);
  }
  std::vector<Stranger> strangers;
  for (const BlockId& id : *stored) {
    if (known.count(id) > 0) {
      continue;
    }
    Stranger stranger{id};
    if (auto file = context.files->open(context.file_of(id))) {
      if (auto head = read_foreign_head(**file)) {
        stranger.parent = head->parent;
        stranger.start = head->start;
      }
    }
    strangers.push_back(stranger);
  }
  std::sort(strangers.begin(), strangers.end(), [](auto& a, auto& b) {
    return a.start > b.start;
  });
  return strangers;
}

/// Leaves those whose chain of parents leads to root, perhaps through blocks
/// that are known to lie below it.
void keep_below(
    std::vector<Stranger>& strangers, const BlockId& root, const IdSet& below
) {
  std::unordered_map<BlockId, BlockId, BlockIdHash> parents;
  for (const Stranger& stranger : strangers) {
    parents[stranger.id] = stranger.parent;
  }
  std::erase_if(strangers, [&](const Stranger& stranger) {
    BlockId at = stranger.parent;
    // A chain of ids has no loops.
    for (;;) {
      if (at == root || below.count(at) > 0) {
        return false;
      }
      auto next = parents.find(at);
      if (next == parents.end()) {
        return true;
      }
      at = next->second;
    }
  });
}

}  // namespace

Result<std::uint64_t> clear_blocks(
    StoreContext& context,
    DiskSpace& space,
    ManifestKeeper& manifest,
    const std::optional<BlockId>& root
) {
  auto lock = DiskTransaction::begin(*context.files, [&] {
    return context.stopping.load();
  });
  if (!lock) {
    return lock.error();
  }
  std::vector<BlockId> doomed = context.cache.clear(root);
  auto strangers = find_strangers(context);
  if (!strangers) {
    return strangers.error();
  }
  // What was indexed or restored meanwhile was no stranger any more.
  for (const BlockId& id : context.cache.clear(root)) {
    doomed.push_back(id);
  }
  IdSet seen(doomed.begin(), doomed.end());
  if (root) {
    IdSet below = seen;
    for (const EntryRecord& entry : context.cache.entries(root)) {
      below.insert(entry.path.begin(), entry.path.end());
    }
    keep_below(*strangers, *root, below);
  }
  for (const Stranger& stranger : *strangers) {
    if (seen.insert(stranger.id).second) {
      doomed.push_back(stranger.id);
    }
  }
  auto removed = space.remove(*lock, doomed, DiskSpace::Reason::kCleared);
  if (!removed) {
    return removed.error();
  }
  auto saved = manifest.save(*lock);
  if (!removed->left.empty()) {
    return Error{
        removed->error->code,
        "[store.clear] " + std::to_string(removed->left.size()) + " of " +
            std::to_string(doomed.size()) +
            " block files could not be removed: " + removed->error->message};
  }
  if (!saved) {
    return saved.error();
  }
  return std::uint64_t{removed->files};
}

}  // namespace afterglow
