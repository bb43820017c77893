#pragma once

#include <string>

#include "engine/engine.h"

namespace CLI {
class App;
}

namespace afterglow {

/// Adds the flags that say which model is loaded and how.
void add_model_flags(CLI::App& command, EngineOptions& options);
/// Adds the flags of the prompt cache.
void add_cache_flags(CLI::App& command, EngineOptions& options);

/// The flags of how tokens are chosen; names and defaults of mlx_lm.
struct SamplingFlags {
  double temperature = 0;
  double top_p = 1;
  std::size_t top_k = 0;
  double min_p = 0;
};
void add_sampling_flags(CLI::App& command, SamplingFlags& flags);

/// Fills in the default model, then loads.
Result<std::unique_ptr<Engine>> load_engine(EngineOptions options);

}  // namespace afterglow
