#include "engine/cache_access.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace afterglow {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

using IdSet = std::unordered_set<BlockId, BlockIdHash>;

/// How long a decision of the user may take to reach the disk; it holds in
/// memory at once.
constexpr auto kSettleTime = 5s;

IdSet covered_by(const std::vector<EntryRecord>& entries) {
  IdSet blocks;
  for (const EntryRecord& entry : entries) {
    blocks.insert(entry.path.begin(), entry.path.end());
  }
  return blocks;
}

Error just_gone(const EntryRecord& entry) {
  return {
      Code::kNotFound,
      "[cache.pin] entry " + short_entry_name(entry) + " has just gone"};
}

std::size_t count_missing(const IdSet& blocks, const IdSet& from) {
  std::size_t missing = 0;
  for (const BlockId& id : blocks) {
    missing += from.count(id) == 0 ? 1 : 0;
  }
  return missing;
}

}  // namespace

CacheAccess::CacheAccess(
    PromptCache& cache,
    Store* store,
    std::function<BlockId(const std::string&)> root_of
)
    : cache_(cache), store_(store), root_of_(std::move(root_of)) {}

std::optional<BlockId> CacheAccess::root(const std::string& cache_namespace
) const {
  if (cache_namespace.empty()) {
    return std::nullopt;
  }
  return root_of_(cache_namespace);
}

std::vector<ListedEntry> CacheAccess::entries(const std::string& cache_namespace
) const {
  return cache_.list_entries(root(cache_namespace));
}

FlushReport CacheAccess::flush(
    steady_clock::time_point deadline, const std::string& cache_namespace
) {
  if (store_ == nullptr) {
    return FlushReport{.complete = true};
  }
  return store_->flush(deadline, root(cache_namespace));
}

Result<Removed> CacheAccess::clear(const std::string& cache_namespace) {
  std::optional<BlockId> below = root(cache_namespace);
  std::vector<EntryRecord> before = cache_.entries(below);
  std::size_t files = 0;
  if (store_ == nullptr) {
    cache_.clear(below);
  } else {
    Result<std::uint64_t> cleared = store_->clear(below);
    if (!cleared.ok()) {
      return cleared.error();
    }
    files = *cleared;
  }
  std::vector<EntryRecord> after = cache_.entries(below);
  Removed removed;
  removed.entries = before.size() - std::min(before.size(), after.size());
  // The disk may have had more than was known, and memory more than the disk.
  removed.blocks =
      std::max(files, count_missing(covered_by(before), covered_by(after)));
  return removed;
}

Result<Removed> CacheAccess::remove(
    const std::string& cache_namespace, const EntryName& name
) {
  Result<EntryRecord> entry = find(cache_namespace, name);
  if (!entry.ok()) {
    return entry.error();
  }
  if (!cache_.remove(entry->path.back(), entry->length, entry->root)) {
    return Error{
        Code::kUnavailable,
        "[cache.remove] a running request uses entry " +
            short_entry_name(*entry) + "; try again when it has ended"};
  }
  bool settled = settle();
  if (store_ != nullptr) {
    if (Status forgotten = store_->forget(*entry); !forgotten.ok()) {
      return forgotten.error();
    }
  }
  if (!settled) {
    return in_memory_only("remove", *entry, "is removed", "");
  }
  IdSet others = covered_by(cache_.entries(entry->root));
  return Removed{1, count_missing(covered_by({*entry}), others)};
}

Result<EntryRecord> CacheAccess::set_pinned(
    const std::string& cache_namespace, const EntryName& name, bool pinned
) {
  Result<EntryRecord> entry = find(cache_namespace, name);
  if (!entry.ok()) {
    return entry.error();
  }
  if (!cache_.set_pinned(
          entry->path.back(), entry->length, pinned, entry->root
      )) {
    return just_gone(*entry);
  }
  bool settled = settle();
  std::optional<EntryRecord> kept = find_again(*entry, pinned);
  if (!kept) {
    return just_gone(*entry);
  }
  std::size_t missing = pinned ? count_not_durable(*kept) : 0;
  if (!settled || missing > 0) {
    std::string what;
    if (missing > 0) {
      what = "; " + std::to_string(missing) + " of its " +
             std::to_string(kept->path.size()) + " blocks are not on disk";
    }
    return in_memory_only(
        "pin", *kept, pinned ? "is pinned" : "is unpinned", what
    );
  }
  return *std::move(kept);
}

Result<EntryRecord> CacheAccess::find(
    const std::string& cache_namespace, const EntryName& name
) const {
  std::optional<EntryRecord> found;
  for (EntryRecord& entry : cache_.entries(root(cache_namespace))) {
    if (!name.matches(entry)) {
      continue;
    }
    if (found) {
      return Error{
          Code::kInvalidArgument,
          "[cache.find] more than one entry has that id, among them " +
              entry_name(*found) + " and " + entry_name(entry)};
    }
    found = std::move(entry);
  }
  if (!found) {
    return Error{
        Code::kNotFound, "[cache.find] there is no entry with that id"};
  }
  return *std::move(found);
}

bool CacheAccess::settle() {
  if (store_ == nullptr) {
    return true;
  }
  return store_->flush(steady_clock::now() + kSettleTime, std::nullopt).saved;
}

std::optional<EntryRecord> CacheAccess::find_again(
    const EntryRecord& entry, bool pinned
) const {
  std::optional<EntryRecord> found;
  for (EntryRecord& other : cache_.entries(entry.root)) {
    bool alike = other.pinned == pinned && other.length == entry.length &&
                 std::equal(
                     entry.path.begin(),
                     entry.path.end() - 1,
                     other.path.begin(),
                     other.path.end() - 1
                 );
    if (!alike) {
      continue;
    }
    if (other.path == entry.path) {
      return std::move(other);
    }
    found = std::move(other);
  }
  return found;
}

std::size_t CacheAccess::count_not_durable(const EntryRecord& entry) const {
  if (store_ == nullptr) {
    return 0;
  }
  auto missing = std::count_if(
      entry.path.begin(),
      entry.path.end(),
      [&](const BlockId& id) { return !cache_.is_durable(id); }
  );
  return static_cast<std::size_t>(missing);
}

Error CacheAccess::in_memory_only(
    const std::string& operation,
    const EntryRecord& entry,
    const std::string& what,
    const std::string& details
) const {
  StoreStats stats = store_->stats();
  std::string why = stats.writing ? "" : ": " + stats.last_error;
  return {
      Code::kUnavailable,
      "[cache." + operation + "] entry " + short_entry_name(entry) + " " +
          what + ", but so far in memory only" + details + why + "; try again"};
}

}  // namespace afterglow
