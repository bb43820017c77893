#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/context.h"
#include "store/disk_lock.h"

namespace afterglow {

/// The disk budget, which all models and processes on the directory share.
/// Thread: safe from any thread; each call needs the directory's lock.
class DiskSpace {
 public:
  explicit DiskSpace(StoreContext& context) : context_(context) {}

  /// Counts the block files anew when nobody has for ten minutes, or always.
  Status recount(DiskTransaction& lock, bool always);

  /// When others removed files since the last call: forgets blocks whose
  /// files are gone.
  Status notice_others(DiskTransaction& lock);
  /// The same for who has no lock: takes it only where others removed
  /// something, or waits for it until the store stops.
  Status look_for_others();

  /// Evicts so that `bytes` more fit; returns how many do, which is less when
  /// the rest is pinned or in use. Order: blocks of other models and unknown
  /// blocks of this one that were used before our oldest entry; what the rule
  /// of eviction picks; the rest of the former.
  Result<std::uint64_t> make_room(DiskTransaction& lock, std::uint64_t bytes);

  /// Why a block goes. kUnusable: corrupt, or not known to be durable.
  enum class Reason { kExpired, kCleared, kSuperseded, kUnusable };

  struct Removed {
    std::size_t files = 0;
    /// Blocks whose files are still there, and why the last of them is.
    std::vector<BlockId> left;
    std::optional<Error> error;
  };

  /// Unlinks blocks of this model and forgets them, after raising the epoch.
  /// Errors: when the epoch cannot be raised; nothing is unlinked then.
  Result<Removed> remove(
      DiskTransaction& lock, std::span<const BlockId> blocks, Reason reason
  );

  /// Adds to, or takes from, the used bytes in the lock.
  Status adjust_used(DiskTransaction& lock, std::int64_t bytes);

 private:
  /// A block file that the cache does not know.
  struct Unclaimed {
    std::string name;
    bool is_ours = false;
    BlockId id;
    std::uint64_t start = 0;
    std::int64_t last_use_ns = 0;  // its own or a descendant's
  };

  Status forget_missing();
  Result<std::uint64_t> limit(const DiskTransaction& lock);
  Status raise_epoch(DiskTransaction& lock);
  enum class Unlinked { kRemoved, kWasGone, kFailed };
  Unlinked unlink(
      DiskTransaction& lock,
      const std::string& name,
      std::optional<Error>* error = nullptr
  );
  Status find_unclaimed();
  void add_unclaimed(const std::string& folder);
  void evict_unclaimed(
      DiskTransaction& lock, std::int64_t used_before_ns, std::uint64_t target
  );
  void evict_claimed(DiskTransaction& lock, std::uint64_t target);

  StoreContext& context_;
  std::mutex mutex_;
  // Guarded by mutex_.
  bool knows_epoch_ = false;
  std::uint64_t seen_epoch_ = 0;
  std::vector<Unclaimed> unclaimed_;  // the next to go last
  std::int64_t unclaimed_since_ns_ = 0;
};

}  // namespace afterglow
