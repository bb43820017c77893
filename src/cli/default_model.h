#pragma once

#include <filesystem>
#include <string>
#include <vector>

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

/// Where set-up and installing put models, for a program in this folder.
std::vector<std::filesystem::path> model_folders(
    const std::filesystem::path& program_directory
);

/// The folder of the running program.
std::filesystem::path program_directory();

/// The path of the model named, or where the name is empty, of this process's
/// default. A model of the hub is downloaded unless it is here, which shows on
/// standard error and which Ctrl-C ends (see download_model).
Result<std::string> model_or_default(const std::string& name);

}  // namespace afterglow
