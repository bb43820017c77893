#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/weights.h"

namespace afterglow {

/// Names of a model directory's weight files: those that
/// model.safetensors.index.json lists, else model*.safetensors.
/// Errors: kNotFound where there are none; kCorrupt for an index that is
/// malformed or names a file outside the directory.
Result<std::vector<std::string>> weight_files(const std::string& directory);

/// The layers whose format config.json's `quantization` fixes by name.
/// Errors: kUnsupported for a quantization that is not one of MLX's, naming
/// it; kCorrupt.
Result<std::map<std::string, MlxQuantization>> read_quantization(
    const nlohmann::json& config, const std::string& where
);

}  // namespace afterglow
