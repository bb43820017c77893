#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "store/context.h"
#include "store/disk_space.h"
#include "store/temporary.h"

namespace afterglow {

/// Makes dirty blocks durable, in the order of docs/block-format.md, and
/// tells the cache what became of each. Thread: one thread.
class BlockWriter {
 public:
  /// on_failed is told of each block that is given up.
  BlockWriter(
      StoreContext& context,
      DiskSpace& space,
      std::function<void(const BlockId&)> on_failed
  )
      : context_(context), space_(space), on_failed_(std::move(on_failed)) {}

  /// Requires: parents come before children.
  void publish(std::span<const PromptCache::Dirty> blocks);

 private:
  enum class Fate { kPending, kLinked, kFailed, kRequeued };

  struct Item {
    const PromptCache::Dirty* dirty = nullptr;
    std::optional<Temporary> temporary;  // none: the file is there already
    std::uint64_t bytes = 0;
    Fate fate = Fate::kPending;

    const Block& block() const { return *dirty->block; }
  };

  void publish_batch(std::span<const PromptCache::Dirty> blocks);
  /// Takes what the items will write from the day's allowance, where there is
  /// one; gives up those that do not fit.
  Status reserve(std::vector<Item>& items);
  /// Corrects the day's count to what was written.
  Status settle_allowance(DiskTransaction& lock);
  /// Errors: why no block at all can be written now.
  Status check_free_space(std::uint64_t bytes);
  /// Writes and syncs what is not there yet; false when the disk is out of
  /// order and trying further blocks is of no use.
  bool prepare(Item& item);
  Status write_temporary(Item& item);
  Status write_once(Item& item);
  void link_all(DiskTransaction& lock, std::vector<Item>& items);
  /// Links one file. Requires: the lock is held and there is room.
  void link(DiskTransaction& lock, Item& item);
  /// True when the parent's file is there; else decides the item's fate.
  bool has_parent(Item& item, std::span<const Item> before);
  bool may_requeue(const BlockId& parent);
  void fail(Item& item, const Error& error);
  void settle(std::vector<Item>& items);
  /// Unlinks what the cache no longer wanted once it was written.
  void remove_unwanted(std::span<const BlockId> blocks);

  struct Requeued {
    int times = 0;
    std::chrono::steady_clock::time_point first;
  };

  StoreContext& context_;
  DiskSpace& space_;
  const std::function<void(const BlockId&)> on_failed_;
  bool has_directories_ = false;
  std::uint64_t written_ = 0;   // bytes of the batch at hand
  std::uint64_t reserved_ = 0;  // for it, of the day's allowance
  bool is_capped_ = false;
  std::unordered_map<BlockId, Requeued, BlockIdHash> requeued_;
};

}  // namespace afterglow
