#include "store/manifest.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "store/clock.h"
#include "store/names.h"
#include "store/temporary.h"

namespace afterglow {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr std::uint64_t kMaxManifestBytes = std::uint64_t{256} << 20;
constexpr std::size_t kFolderChars = 129;

std::optional<EntryType> parse_type(const std::string& text) {
  for (EntryType type :
       {EntryType::kAssistant, EntryType::kUser, EntryType::kSystem}) {
    if (text == to_string(type)) {
      return type;
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> unsigned_field(const Json& in, const char* key) {
  auto found = in.find(key);
  if (found == in.end() || !found->is_number_unsigned()) {
    return std::nullopt;
  }
  return found->get<std::uint64_t>();
}

std::optional<std::string> text_field(const Json& in, const char* key) {
  auto found = in.find(key);
  if (found == in.end() || !found->is_string()) {
    return std::nullopt;
  }
  return found->get<std::string>();
}

std::optional<std::vector<BlockId>> path_field(const Json& in) {
  auto found = in.find("path");
  if (found == in.end() || !found->is_array() || found->empty()) {
    return std::nullopt;
  }
  std::vector<BlockId> path;
  for (const Json& item : *found) {
    if (!item.is_string()) {
      return std::nullopt;
    }
    Result<BlockId> id = BlockId::parse(item.get_ref<const std::string&>());
    if (!id) {
      return std::nullopt;
    }
    path.push_back(*id);
  }
  return path;
}

std::optional<ManifestEntry> parse_entry(const Json& in, std::int64_t now_ns) {
  if (!in.is_object()) {
    return std::nullopt;
  }
  auto model = text_field(in, "model");
  auto path = path_field(in);
  auto tokens = unsigned_field(in, "tokens");
  auto type_name = text_field(in, "type");
  auto type = type_name ? parse_type(*type_name) : std::nullopt;
  auto last_use = unsigned_field(in, "last_use_ns");
  auto hits = unsigned_field(in, "hits");
  auto ttl = unsigned_field(in, "ttl_ns");
  auto pinned = in.find("pinned");
  if (!model || model->size() != kFolderChars || !path || !tokens || !type ||
      !last_use || !hits || !ttl || pinned == in.end() ||
      !pinned->is_boolean()) {
    return std::nullopt;
  }
  std::uint64_t blocks = pages_for(*tokens);
  if (*tokens == 0 || blocks != path->size()) {
    return std::nullopt;
  }
  ManifestEntry entry;
  entry.model = *model;
  entry.record.path = std::move(*path);
  entry.record.length = static_cast<std::size_t>(*tokens);
  entry.record.type = *type;
  entry.record.last_use_ns = static_cast<std::int64_t>(
      std::min(*last_use, static_cast<std::uint64_t>(now_ns))
  );
  entry.record.hits = *hits;
  entry.record.pinned = pinned->get<bool>();
  entry.record.pin_time_ns = static_cast<std::int64_t>(std::min(
      unsigned_field(in, "pin_time_ns").value_or(0),
      static_cast<std::uint64_t>(now_ns)
  ));
  constexpr auto kMaxTtl =
      static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  entry.record.ttl_ns = static_cast<std::int64_t>(std::min(*ttl, kMaxTtl));
  return entry;
}

/// Where an entry ends; two entries with the same end are the same.
using EntryKey = std::tuple<std::string, BlockId, std::size_t>;

EntryKey key_of(const ManifestEntry& entry) {
  return {entry.model, entry.record.path.back(), entry.record.length};
}

bool may_be_absorbed(const EntryRecord& record) {
  return !record.pinned && record.type != EntryType::kSystem;
}

void absorb_prefixes(std::vector<ManifestEntry>& entries) {
  // The most tokens an entry running through a block has; ids are a chain, so
  // running through an entry's last block is having it as a prefix.
  std::map<std::pair<std::string, BlockId>, std::size_t> longest;
  for (const ManifestEntry& entry : entries) {
    for (const BlockId& id : entry.record.path) {
      std::size_t& length = longest[{entry.model, id}];
      length = std::max(length, entry.record.length);
    }
  }
  std::erase_if(entries, [&](const ManifestEntry& entry) {
    const EntryRecord& record = entry.record;
    return may_be_absorbed(record) &&
           longest[{entry.model, record.path.back()}] > record.length;
  });
}

}  // namespace

std::string format_manifest(const Manifest& manifest) {
  std::vector<const ManifestEntry*> order;
  for (const ManifestEntry& entry : manifest.entries) {
    order.push_back(&entry);
  }
  std::stable_sort(order.begin(), order.end(), [](auto a, auto b) {
    return a->record.last_use_ns < b->record.last_use_ns;
  });
  Json entries = Json::array();
  for (const ManifestEntry* entry : order) {
    const EntryRecord& record = entry->record;
    Json path = Json::array();
    for (const BlockId& id : record.path) {
      path.push_back(id.hex());
    }
    auto not_negative = [](std::int64_t value) {
      return static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0));
    };
    entries.push_back({
        {"model", entry->model},
        {"type", to_string(record.type)},
        {"tokens", record.length},
        {"last_use_ns", not_negative(record.last_use_ns)},
        {"hits", record.hits},
        {"pinned", record.pinned},
        {"ttl_ns", not_negative(record.ttl_ns)},
    });
    if (record.pin_time_ns > 0) {
      entries.back()["pin_time_ns"] = record.pin_time_ns;
    }
    entries.back()["path"] = std::move(path);
  }
  Json out;
  out["version"] = kVersion;
  out["entries"] = std::move(entries);
  return out.dump() + "\n";
}

Result<Manifest> parse_manifest(std::string_view text, std::int64_t now_ns) {
  Json in = Json::parse(text, nullptr, false);
  if (in.is_discarded() || !in.is_object()) {
    return Error{Code::kCorrupt, "[store.manifest] not a JSON object"};
  }
  auto version = unsigned_field(in, "version");
  if (!version) {
    return Error{Code::kCorrupt, "[store.manifest] no version"};
  }
  if (*version != kVersion) {
    return Error{
        Code::kUnsupported,
        "[store.manifest] version " + std::to_string(*version) +
            ", this build reads 1"};
  }
  auto entries = in.find("entries");
  if (entries == in.end() || !entries->is_array()) {
    return Error{Code::kCorrupt, "[store.manifest] no list of entries"};
  }
  Manifest manifest;
  for (const Json& item : *entries) {
    if (auto entry = parse_entry(item, now_ns)) {
      manifest.entries.push_back(std::move(*entry));
    }
  }
  return manifest;
}

Manifest merge_manifests(const Manifest& a, const Manifest& b) {
  std::map<EntryKey, const ManifestEntry*> newest;
  std::map<EntryKey, const ManifestEntry*> decided;
  std::map<EntryKey, EntryType> types;
  for (const Manifest* source : {&a, &b}) {
    for (const ManifestEntry& entry : source->entries) {
      const ManifestEntry*& held = newest[key_of(entry)];
      if (held == nullptr ||
          entry.record.last_use_ns >= held->record.last_use_ns) {
        held = &entry;
      }
      EntryType& type = types[key_of(entry)];
      type = std::max(type, entry.record.type);
      const ManifestEntry*& last = decided[key_of(entry)];
      if (last == nullptr ||
          entry.record.pin_time_ns > last->record.pin_time_ns) {
        last = &entry;
      }
    }
  }
  Manifest merged;
  for (const auto& [key, entry] : newest) {
    EntryRecord& record = merged.entries.emplace_back(*entry).record;
    record.type = types.at(key);
    const EntryRecord& decision = decided.at(key)->record;
    if (decision.pin_time_ns > record.pin_time_ns) {
      record.pinned = decision.pinned;
      record.pin_time_ns = decision.pin_time_ns;
    }
  }
  absorb_prefixes(merged.entries);
  return merged;
}

void keep_stored(
    Manifest& manifest,
    const std::string& model,
    const std::set<BlockId>& stored
) {
  std::erase_if(manifest.entries, [&](ManifestEntry& entry) {
    if (entry.model != model) {
      return false;
    }
    EntryRecord& record = entry.record;
    std::size_t blocks = 0;
    while (blocks < record.path.size() && stored.count(record.path[blocks])) {
      ++blocks;
    }
    record.path.resize(blocks);
    record.length = std::min(record.length, blocks * kPageTokens);
    return blocks == 0;
  });
}

void drop_expired(Manifest& manifest, std::int64_t now_ns) {
  std::erase_if(manifest.entries, [&](const ManifestEntry& entry) {
    const EntryRecord& record = entry.record;
    return record.ttl_ns > 0 && !record.pinned &&
           now_ns - record.last_use_ns > record.ttl_ns;
  });
}

Result<Manifest> read_manifest(FileSystem& files) {
  Result<std::unique_ptr<File>> file = files.open(names::kManifest);
  if (!file) {
    return file.error();
  }
  Result<FileInfo> info = (*file)->info();
  if (!info) {
    return info.error();
  }
  if (info->bytes > kMaxManifestBytes) {
    return Error{
        Code::kCorrupt,
        "[store.manifest] " + std::to_string(info->bytes) +
            " bytes are too many"};
  }
  std::string text(static_cast<std::size_t>(info->bytes), '\0');
  Result<std::size_t> count = (*file)->read_at(
      0, std::as_writable_bytes(std::span(text.data(), text.size()))
  );
  if (!count) {
    return count.error();
  }
  text.resize(*count);
  return parse_manifest(text, unix_now_ns());
}

Status write_manifest(FileSystem& files, const Manifest& manifest) {
  return replace_file(
      files, names::kVersion, names::kManifest, format_manifest(manifest)
  );
}

}  // namespace afterglow
