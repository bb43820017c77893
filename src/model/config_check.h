#pragma once

#include <string>

#include "base/result.h"
#include "model/config.h"

namespace afterglow {

/// Checks what both readers of a config must: sizes within reason and in
/// proportion. Errors: kCorrupt.
Status check_config(const ModelConfig& config, const std::string& where);

}  // namespace afterglow
