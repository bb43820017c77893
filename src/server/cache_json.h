#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "engine/engine.h"

namespace afterglow {

/// The body of GET /v1/cache: what each tier holds and may hold.
nlohmann::ordered_json cache_json(
    const EngineReport& report, const std::vector<EntryRecord>& entries
);

}  // namespace afterglow
