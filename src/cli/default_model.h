#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace afterglow {

/// The model to use without --model: $AFTERGLOW_MODEL, else the one that
/// set-up placed beside the program: in ../share/afterglow/models (installed)
/// or models (build tree).
/// Errors: kNotFound naming the places looked at; kInvalidArgument when there
/// are several and none is the one that set-up installs.
Result<std::string> find_default_model(
    const std::filesystem::path& program_directory, const char* environment
);

/// The model named, or where the name is empty, that of this process.
Result<std::string> model_or_default(const std::string& name);

}  // namespace afterglow
