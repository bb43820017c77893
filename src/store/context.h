#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <string>

#include "base/file_system.h"
#include "base/page.h"
#include "kv/prompt_cache.h"
#include "store/block_format.h"
#include "store/store.h"

namespace afterglow {

/// What the parts of one Store share.
/// Thread: constant after construction but for the members that say so.
class StoreContext {
 public:
  StoreContext(
      std::unique_ptr<FileSystem> file_system,
      StoreOptions store_options,
      PromptCache& prompt_cache,
      PagePool& page_pool
  );

  const std::unique_ptr<FileSystem> files;
  const StoreOptions options;
  const ModelKey key;
  const std::string folder;  // of the model
  const std::string blocks;  // directory of its block files
  PromptCache& cache;
  PagePool& pool;
  /// Set once; every loop of every thread looks at it.
  std::atomic<bool> stopping{false};

  /// The block's file, relative to the root.
  std::string file_of(const BlockId& id) const;

  /// Changes the counters under their lock.
  template <class Change>
  void count(Change change) {
    std::lock_guard guard(mutex_);
    change(stats_);
  }
  StoreStats stats() const;

  /// A block could not be read, though it may be good. Counted; logged once a
  /// minute for each code.
  void reading_failed(const Error& error);

  /// Writing to the directory failed or works again; logged when it changes.
  void writing_failed(const Error& error);
  void writing_works();

 private:
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  StoreStats stats_;
  std::map<Code, std::chrono::steady_clock::time_point> read_errors_logged_;
};

}  // namespace afterglow
