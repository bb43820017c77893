#include "server/cache_json.h"

#include <utility>

namespace afterglow {
namespace {

using json = nlohmann::ordered_json;

json limit(std::uint64_t value) {
  return value == CacheLimits::kUnlimited ? json(nullptr) : json(value);
}

json entry_json(const EntryRecord& entry) {
  return {
      {"id", entry.path.empty() ? "" : entry.path.back().hex()},
      {"type", to_string(entry.type)},
      {"tokens", entry.length},
      {"blocks", entry.path.size()},
      {"hits", entry.hits},
      {"last_use", static_cast<double>(entry.last_use_ns) * 1e-9},
      {"pinned", entry.pinned},
      {"ttl_seconds", static_cast<double>(entry.ttl_ns) * 1e-9},
  };
}

json disk_json(const CacheStats& cache, const StoreStats& store) {
  return {
      {"blocks", cache.disk_blocks},
      {"bytes", cache.disk_bytes},
      {"bytes_of_all_models", store.disk_used_bytes},
      {"budget_bytes", store.disk_limit_bytes},
      {"dirty_blocks", cache.dirty_blocks},
      {"dirty_bytes", cache.dirty_bytes},
      {"oldest_dirty_seconds", cache.oldest_dirty_seconds},
      {"written_blocks", store.written_blocks},
      {"written_bytes", store.written_bytes},
      {"write_failures", store.write_failures},
      {"read_blocks", store.read_blocks},
      {"read_bytes", store.read_bytes},
      {"corrupt_blocks", store.corrupt_blocks},
      {"evicted_blocks", store.evicted_blocks},
      {"index_complete", store.index_complete},
      {"writing", store.writing},
      {"last_error",
       store.last_error.empty() ? json(nullptr) : json(store.last_error)},
  };
}

}  // namespace

json cache_json(
    const EngineReport& report, const std::vector<EntryRecord>& entries
) {
  const CacheStats& cache = report.cache;
  json by_type = json::object();
  for (const EntryType type :
       {EntryType::kSystem, EntryType::kUser, EntryType::kAssistant}) {
    by_type[to_string(type)] =
        cache.entries_by_type[static_cast<std::size_t>(type)];
  }
  json list = json::array();
  for (const EntryRecord& entry : entries) list.push_back(entry_json(entry));
  return {
      {"object", "cache"},
      {"requests", {{"running", report.running}, {"queued", report.queued}}},
      {"lookups", cache.lookups},
      {"hits", cache.hits},
      {"hit_tokens", cache.hit_tokens},
      {"ram",
       {{"blocks", cache.ram_pages},
        {"bytes", cache.ram_bytes},
        {"budget_bytes", limit(cache.limits.ram_bytes)},
        {"evicted_blocks", cache.evicted_ram_blocks},
        {"dropped_blocks", cache.dropped_blocks}}},
      {"disk", report.store ? disk_json(cache, *report.store) : json(nullptr)},
      {"entry_count", cache.entries},
      {"entry_budget", limit(cache.limits.entries)},
      {"evicted_entries", cache.evicted_entries},
      {"entries_by_type", std::move(by_type)},
      {"entries", std::move(list)},
  };
}

}  // namespace afterglow
