#include "model/model_name.h"

#include <filesystem>
#include <optional>
#include <system_error>

namespace afterglow {
namespace {

namespace fs = std::filesystem;

constexpr char kHubFolder[] = "models--";

/// The hub's name of .../models--organization--name/snapshots/<commit>.
std::optional<std::string> hub_name(const fs::path& snapshot) {
  const fs::path snapshots = snapshot.parent_path();
  const std::string folder = snapshots.parent_path().filename().string();
  if (snapshots.filename() != "snapshots" || !folder.starts_with(kHubFolder)) {
    return std::nullopt;
  }
  std::string name = folder.substr(std::size(kHubFolder) - 1);
  const std::size_t dashes = name.find("--");
  if (dashes != std::string::npos) {
    name[dashes] = '/';
    name.erase(dashes + 1, 1);
  }
  return name;
}

bool is_in_hub_cache(const fs::path& file) {
  for (fs::path folder = file.parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    if (hub_name(folder)) return true;
  }
  return false;
}

}  // namespace

std::string model_name(const std::string& path) {
  std::error_code error;
  fs::path full = fs::absolute(path, error).lexically_normal();
  if (!full.has_filename()) full = full.parent_path();
  if (fs::is_directory(full, error)) {
    if (auto name = hub_name(full)) return *name;
    const fs::path real = fs::weakly_canonical(full, error);
    return (error ? full : real).filename().string();
  }
  if (is_in_hub_cache(full)) return full.stem().string();
  const fs::path real = fs::weakly_canonical(full, error);
  return (error ? full : real).stem().string();
}

}  // namespace afterglow
