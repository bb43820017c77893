#pragma once

#include <string>
#include <vector>

#include "afterglow/model.h"
#include "engine/engine.h"

namespace CLI {
class App;
}

namespace afterglow {

/// Adds the flags that say which model is loaded and how.
void add_model_flags(CLI::App& command, EngineOptions& options);
/// Adds the flags of the prompt cache.
void add_cache_flags(CLI::App& command, LoadOptions& options);

/// Refuses what flags of these two say together and cannot mean. To be called
/// when all are taken in. Throws: CLI::ValidationError, naming the flag.
void check_together(const LoadOptions& options);

/// The flags of how tokens are chosen; names and defaults of mlx_lm.
struct SamplingFlags {
  double temperature = 0;
  double top_p = 1;
  std::size_t top_k = 0;
  double min_p = 0;
  std::size_t min_tokens_to_keep = 1;
  double xtc_probability = 0;
  double xtc_threshold = 0.1;
};
/// The first four, which the server takes as defaults of its requests.
void add_request_sampling_flags(CLI::App& command, SamplingFlags& flags);
/// All of them.
void add_sampling_flags(CLI::App& command, SamplingFlags& flags);
/// Whether a model can do what they say. Errors: kInvalidArgument, naming the
/// flag.
Status check_sampling(const SamplingFlags& flags, const ModelInfo& model);
/// What they say for a model. Throws: what check_sampling finds. `stop_tokens`
/// are all that end an answer.
SamplingParams sampling_params(
    const SamplingFlags& flags,
    const Model& model,
    const std::vector<Token>& stop_tokens
);

/// Fills in the default model, then loads.
Result<std::unique_ptr<Engine>> load_engine(EngineOptions options);
/// The same by the public interface; throws its exceptions.
Model load_public_model(const EngineOptions& options);

}  // namespace afterglow
