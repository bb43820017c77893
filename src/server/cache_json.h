#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "engine/engine.h"

namespace afterglow {

/// One entry, as all cache endpoints tell of it.
nlohmann::ordered_json entry_json(const EntryRecord& entry);

/// The body of GET /v1/cache: what each tier holds and may hold, of all
/// clients together, and the entries given; with a tokenizer also their texts.
nlohmann::ordered_json cache_json(
    const EngineReport& report,
    const std::vector<ListedEntry>& entries,
    const Tokenizer* tokenizer = nullptr
);

}  // namespace afterglow
