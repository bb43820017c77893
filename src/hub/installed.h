#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace afterglow {

/// A model on this machine.
struct InstalledModel {
  std::string name;      // what --model takes
  std::string path;      // a folder or a GGUF file
  std::string revision;  // a branch, tag or commit of the hub; else empty
  std::string format;    // "safetensors" or "gguf"; empty when incomplete
  std::uint64_t bytes = 0;
  bool complete = true;  // false: a download that can be continued
};

/// The models in the hub's cache, by name, and before them the GGUF files and
/// model folders right in `folders`, named by their paths. Folders that do not
/// exist hold none.
/// Errors: kIo, kPermission for a cache that cannot be read.
Result<std::vector<InstalledModel>> installed_models(
    std::span<const std::filesystem::path> folders
);

/// The folder of the hub's cache, which need not exist.
Result<std::string> hub_cache();

}  // namespace afterglow
