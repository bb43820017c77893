#include "cli/default_model.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <vector>

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
  const fs::path folders[] = {
      (program_directory / "../share/afterglow/models").lexically_normal(),
      program_directory / "models"};
  std::string looked_at;
  for (const fs::path& folder : folders) {
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

Result<std::string> model_or_default(const std::string& name) {
  if (!name.empty()) return name;
  std::error_code ec;
  const fs::path program = fs::read_symlink("/proc/self/exe", ec);
  return find_default_model(
      program.parent_path(), std::getenv("AFTERGLOW_MODEL")
  );
}

}  // namespace afterglow
