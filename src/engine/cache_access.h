#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kv/entry_list.h"
#include "kv/entry_name.h"
#include "kv/prompt_cache.h"
#include "store/store.h"

namespace afterglow {

/// What was removed from the cache.
struct Removed {
  std::size_t entries = 0;
  std::size_t blocks = 0;
};

/// The cache as people's tools see it: one namespace's part of it, or, for
/// the namespace "", all.
/// Thread: safe from any thread; may wait for the disk, so neither the
/// generation thread nor one that does I/O for clients.
class CacheAccess {
 public:
  /// store may be null. root_of: below which a namespace's blocks lie.
  /// Requires: cache and store outlive the object.
  CacheAccess(
      PromptCache& cache,
      Store* store,
      std::function<BlockId(const std::string&)> root_of
  );

  /// As the functions of Engine. What was decided holds in memory at once;
  /// kUnavailable when it has not reached the disk, with all blocks of an entry
  /// that is pinned, within 5 seconds.
  std::vector<ListedEntry> entries(const std::string& cache_namespace) const;
  FlushReport flush(
      std::chrono::steady_clock::time_point deadline,
      const std::string& cache_namespace
  );
  Result<Removed> clear(const std::string& cache_namespace);
  Result<Removed> remove(
      const std::string& cache_namespace, const EntryName& name
  );
  Result<EntryRecord> set_pinned(
      const std::string& cache_namespace, const EntryName& name, bool pinned
  );

 private:
  std::optional<BlockId> root(const std::string& cache_namespace) const;
  Result<EntryRecord> find(
      const std::string& cache_namespace, const EntryName& name
  ) const;
  /// Brings a decision to the disk, so that it outlives the process; false
  /// when it is not there in time.
  bool settle();
  /// The entry as it is now: a longer block may have taken its last's place.
  std::optional<EntryRecord> find_again(const EntryRecord& entry, bool pinned)
      const;
  std::size_t count_not_durable(const EntryRecord& entry) const;
  /// Why a decision is not on disk. Requires: there is a store.
  Error in_memory_only(
      const std::string& operation,
      const EntryRecord& entry,
      const std::string& what,
      const std::string& details
  ) const;

  PromptCache& cache_;
  Store* store_;
  std::function<BlockId(const std::string&)> root_of_;
};

}  // namespace afterglow
