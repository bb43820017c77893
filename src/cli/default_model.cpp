#include "cli/default_model.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <vector>

#include "cli/download_model.h"

namespace afterglow {
namespace {

namespace fs = std::filesystem;

constexpr char kInstalledModel[] = "SmolLM2-135M-Instruct.Q4_1.gguf";

std::vector<fs::path> models_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    if (entry.path().extension() == ".gguf") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

Result<std::string> choose(
    const fs::path& folder, const std::vector<fs::path>& models
) {
  if (models.size() == 1) return models.front().string();
  std::string names;
  for (const fs::path& model : models) {
    if (model.filename() == kInstalledModel) return model.string();
    names += (names.empty() ? "" : ", ") + model.filename().string();
  }
  return Error{
      Code::kInvalidArgument,
      "[cli.model] " + folder.string() + " holds several models (" + names +
          "); choose one with --model"};
}

}  // namespace

Result<std::string> find_default_model(
    const fs::path& program_directory, const char* environment
) {
  if (environment != nullptr && *environment != 0) return {environment};
  std::string looked_at;
  for (const fs::path& folder : model_folders(program_directory)) {
    const auto models = models_in(folder);
    if (!models.empty()) return choose(folder, models);
    looked_at += "\n  " + (folder / "*.gguf").string();
  }
  return Error{
      Code::kNotFound,
      "[cli.model] no model was given. Name one with --model or "
      "AFTERGLOW_MODEL, or let `make build` put the default one in place. "
      "Looked at:" +
          looked_at};
}

std::vector<fs::path> model_folders(const fs::path& program_directory) {
  return {
      (program_directory / "../share/afterglow/models").lexically_normal(),
      program_directory / "models"};
}

fs::path program_directory() {
  std::error_code ec;
  return fs::read_symlink("/proc/self/exe", ec).parent_path();
}

Result<std::string> model_or_default(const std::string& name) {
  if (!name.empty()) return download_model(name);
  auto found =
      find_default_model(program_directory(), std::getenv("AFTERGLOW_MODEL"));
  return found.ok() ? download_model(*found) : found;
}

}  // namespace afterglow
