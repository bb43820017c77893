#include "cli/cache_report.h"

#include <cstdio>

#include "kv/entry_name.h"
#include "server/cache_json.h"

namespace afterglow {
namespace {

constexpr std::size_t kShortDigits = 12;
constexpr std::size_t kFingerprintDigits = 64;
constexpr std::size_t kNamesShown = 5;

}  // namespace

void print_json(const CacheJson& json) {
  auto replace = CacheJson::error_handler_t::replace;
  std::printf("%s\n", json.dump(2, ' ', false, replace).c_str());
}

std::string short_folder(const std::string& folder) {
  return folder.substr(0, kShortDigits) + "-" +
         folder.substr(kFingerprintDigits + 1, kShortDigits);
}

std::string model_title(const StoredModel& model) {
  return model.name.empty() ? short_folder(model.folder) : model.name;
}

CacheJson model_json(const StoredModel& model) {
  return {
      {"name", model.name},
      {"folder", model.folder},
      {"blocks", model.blocks.size()},
      {"bytes", model.bytes},
  };
}

CacheJson entry_json(const StoredEntry& entry, std::int64_t now_ns) {
  auto seconds = [](std::int64_t ns) { return static_cast<double>(ns) / 1e9; };
  const std::int64_t expires = entry.expires_at_ns();
  CacheJson json = entry_json(entry.record);
  json["short_id"] = short_entry_name(entry.record);
  json["model"] = entry.model->name;
  json["folder"] = entry.model->folder;
  json["bytes"] = entry.bytes;
  json["own_bytes"] = entry.own_bytes;
  json["age_seconds"] = seconds(now_ns - entry.record.last_use_ns);
  json["expires"] = expires == 0 ? CacheJson() : CacheJson(seconds(expires));
  json["in_manifest"] = entry.listed;
  return json;
}

Result<const StoredEntry*> find_entry(
    const CacheContents& contents, const std::string& text
) {
  const auto name = parse_entry_name(text);
  if (!name.ok()) return name.error();
  const StoredEntry* found = nullptr;
  std::size_t count = 0;
  std::string names;
  for (const StoredEntry& entry : contents.entries) {
    if (!name->matches(entry.record)) continue;
    found = &entry;
    if (++count <= kNamesShown) {
      names += (names.empty() ? "" : ", ") + short_entry_name(entry.record);
    }
  }
  if (count == 1) return found;
  if (count == 0) {
    return Error{
        Code::kNotFound,
        "[cache.entry] no entry '" + text +
            "'; `afterglow cache list` prints the ids that there are"};
  }
  return Error{
      Code::kInvalidArgument,
      "[cache.entry] '" + text + "' fits " + std::to_string(count) +
          " entries (" + names + (count > kNamesShown ? ", ..." : "") +
          "); give more of the id"};
}

}  // namespace afterglow
