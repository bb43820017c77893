#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "model/config.h"
#include "model/model.h"
#include "model/weights.h"

namespace afterglow {

/// The registry's name for a config.json's model_type or a GGUF file's
/// general.architecture. Errors: kUnsupported naming it and the known ones.
Result<std::string> architecture_for(const std::string& name);

/// Builds the network config.architecture names, handing its weights to ops.
/// Requires: config.architecture came from architecture_for.
/// Errors: of Weights and Ops::add_linear.
Result<std::unique_ptr<Architecture>> make_architecture(
    const ModelConfig& config, Weights& weights, Ops& ops
);

/// Each architecture's own builder, in architectures/<name>.cpp.
Result<std::unique_ptr<Architecture>> make_llama(
    const ModelConfig& config, Weights& weights, Ops& ops
);

}  // namespace afterglow
