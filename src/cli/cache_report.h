#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "store/cache_directory.h"

namespace afterglow {

// What the cache commands have in common: opening, finding, telling.

using CacheJson = nlohmann::ordered_json;

void print_json(const CacheJson& json);

/// The name that an entry's model goes by; its folder's short form when
/// model.json tells none.
std::string model_title(const StoredModel& model);
/// "<12 hex>-<12 hex>" of fingerprint and spec.
std::string short_folder(const std::string& folder);

CacheJson model_json(const StoredModel& model);
/// As GET /v1/cache shows an entry, and what the files tell besides.
CacheJson entry_json(const StoredEntry& entry, std::int64_t now_ns);

/// The entry that the text names: digits of its last block's id from the
/// first on, perhaps with its tokens behind a colon.
/// Errors: kNotFound; kInvalidArgument for several or no such form.
Result<const StoredEntry*> find_entry(
    const CacheContents& contents, const std::string& text
);

}  // namespace afterglow
