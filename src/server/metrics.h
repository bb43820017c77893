#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "engine/engine.h"

namespace afterglow {

/// The body of GET /metrics: everything the engine counts, of all clients
/// together, how many requests are still being prepared for it, and how many
/// answers had which status.
/// Source: https://prometheus.io/docs/instrumenting/exposition_formats
std::string metrics_text(
    const EngineReport& report,
    std::size_t preparing,
    const std::map<unsigned, std::uint64_t>& responses
);

inline constexpr char kMetricsType[] =
    "text/plain; version=0.0.4; charset=utf-8";

}  // namespace afterglow
