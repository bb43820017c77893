#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_set>
#include <vector>

#include "store/block_writer.h"
#include "store/context.h"
#include "store/disk_space.h"
#include "store/manifest_keeper.h"
#include "store/used_files.h"

namespace afterglow {

/// The writer thread: publishes what is dirty, sees to what is used being on
/// disk, keeps the manifest, and once a second looks at what other processes
/// did.
/// Thread: flush from any thread, several at once.
class WriteLoop {
 public:
  WriteLoop(StoreContext& context, DiskSpace& space, ManifestKeeper& manifest);
  /// Requires: context.stopping is set.
  ~WriteLoop();

  /// As Store::flush.
  FlushReport flush(
      std::chrono::steady_clock::time_point deadline,
      const std::optional<BlockId>& root
  );

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  void open_directory();
  void publish();
  void look_around();
  void expire();
  /// Unlinks what take_superseded gives; what cannot go now is tried again.
  void remove_unwanted();
  /// What took entries out since the last call.
  DiskSpace::Reason why_unwanted();
  void save_manifest_if_due();
  void save_manifest();
  /// Everything asked of flush is done, as far as it can be.
  void answer_flushes();

  StoreContext& context_;
  DiskSpace& space_;
  ManifestKeeper& manifest_;
  BlockWriter writer_;
  UsedFiles used_files_;

  // The thread's own.
  std::uint64_t saved_hits_ = 0;
  bool manifest_is_behind_ = false;
  Clock::time_point manifest_due_;
  Clock::time_point look_due_;
  Evictions evicted_;               // of the cache, when last looked at
  std::vector<BlockId> left_over_;  // to unlink, children before parents

  std::mutex mutex_;
  std::condition_variable answered_;
  // Guarded by mutex_.
  int flushing_ = 0;  // calls of flush for which tails do not wait
  int watching_ = 0;  // calls of flush that want to know of failures
  std::unordered_set<BlockId, BlockIdHash> failed_;  // while any is
  std::uint64_t asked_ = 0;                          // manifests asked for
  std::uint64_t saved_ = 0;  // of those, saved or failed
  bool last_save_failed_ = false;

  std::thread thread_;
};

}  // namespace afterglow
