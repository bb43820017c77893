#pragma once

#include <string>

#include "engine/engine.h"

namespace afterglow {

/// The body of GET /metrics: everything the engine counts, of all clients
/// together.
/// Source: https://prometheus.io/docs/instrumenting/exposition_formats
std::string metrics_text(const EngineReport& report);

inline constexpr char kMetricsType[] =
    "text/plain; version=0.0.4; charset=utf-8";

}  // namespace afterglow
