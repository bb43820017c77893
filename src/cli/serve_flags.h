#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/access_flags.h"
#include "cli/engine_flags.h"
#include "engine/engine.h"
#include "server/http_server.h"
#include "server/openai_schema.h"

namespace CLI {
class App;
}

namespace afterglow {

/// What the flags of `afterglow serve` say.
struct ServeFlags {
  EngineOptions engine;
  HttpOptions http;
  AccessFlags access;
  SamplingFlags sampling;
  RequestDefaults requests;  // but for the sampling
  std::size_t drain_seconds = 10;
  std::string log_level = "INFO";
  std::string file_with_keys;  // a --config that holds API keys, or ""
  std::vector<std::string> unknown_variables;  // what to tell of them
};

/// Adds the flags. `flags` holds their defaults and must outlive the parsing.
void add_serve_flags(CLI::App& command, ServeFlags& flags);

}  // namespace afterglow
