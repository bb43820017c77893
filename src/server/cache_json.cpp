#include "server/cache_json.h"

#include <array>
#include <utility>

#include "kv/entry_name.h"
#include "server/entry_texts.h"

namespace afterglow {
namespace {

using json = nlohmann::ordered_json;

/// Room for what is told of an entry: lists may be long.
constexpr std::size_t kEntryMembers = 14;

json limit(std::uint64_t value) {
  return value == CacheLimits::kUnlimited ? json(nullptr) : json(value);
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
      {"manifest_bytes", store.manifest_bytes},
      {"syncs", store.syncs},
      {"capped_blocks", store.capped_blocks},
      {"write_failures", store.write_failures},
      {"read_blocks", store.read_blocks},
      {"read_bytes", store.read_bytes},
      {"corrupt_blocks", store.corrupt_blocks},
      {"evicted_blocks", store.evicted_blocks.total()},
      {"index_complete", store.index_complete},
      {"writing", store.writing},
      {"last_error",
       store.last_error.empty() ? json(nullptr) : json(store.last_error)},
  };
}

json evicted_entries_json(const Evictions& evicted) {
  return {
      {"count", evicted.over_count},
      {"disk", evicted.over_disk},
      {"expired", evicted.expired},
      {"removed", evicted.removed},
      {"lost", evicted.lost},
  };
}

}  // namespace

json entry_json(const EntryRecord& entry) {
  json body = json::object();
  body.get_ref<json::object_t&>().reserve(kEntryMembers);
  body["id"] = entry_name(entry);
  body["type"] = to_string(entry.type);
  body["tokens"] = entry.length;
  body["blocks"] = entry.path.size();
  body["hits"] = entry.hits;
  body["last_use"] = static_cast<double>(entry.last_use_ns) * 1e-9;
  body["pinned"] = entry.pinned;
  body["ttl_seconds"] = entry.ttl_ns == 0
                            ? json(nullptr)
                            : json(static_cast<double>(entry.ttl_ns) * 1e-9);
  return body;
}

json cache_json(
    const EngineReport& report,
    const std::vector<ListedEntry>& entries,
    const Tokenizer* tokenizer
) {
  const CacheStats& cache = report.cache;
  std::array<std::size_t, 3> counts{};
  json list = json::array();
  list.get_ref<json::array_t&>().reserve(entries.size());
  for (const ListedEntry& entry : entries) {
    ++counts[static_cast<std::size_t>(entry.record.type)];
    json& listed = list.emplace_back(entry_json(entry.record));
    listed["ram_blocks"] = entry.ram_blocks;
    listed["disk_blocks"] = entry.disk_blocks;
    listed["bytes"] = entry.bytes;
    listed["order"] = entry.order;
    listed["shared_tokens"] = entry.shared_tokens;
    if (tokenizer != nullptr) {
      listed["texts"] = entry_texts_json(entry, *tokenizer);
    }
  }
  json by_type = json::object();
  for (const EntryType type :
       {EntryType::kSystem, EntryType::kUser, EntryType::kAssistant}) {
    by_type[to_string(type)] = counts[static_cast<std::size_t>(type)];
  }
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
        {"evicted_blocks", cache.evicted.ram_blocks},
        {"dropped_blocks", cache.dropped_blocks}}},
      {"disk", report.store ? disk_json(cache, *report.store) : json(nullptr)},
      {"entry_budget", limit(cache.limits.entries)},
      {"evicted_entries", evicted_entries_json(cache.evicted)},
      {"entry_count", entries.size()},
      {"entries_by_type", std::move(by_type)},
      {"entries", std::move(list)},
  };
}

}  // namespace afterglow
