#include "hub/installed.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <system_error>

#include "text/textkit_util.h"

namespace afterglow {
namespace {

namespace fs = std::filesystem;
using textkit::take_error;

using ModelList = std::unique_ptr<tk_hub_models, decltype(&tk_hub_models_free)>;

InstalledModel to_model(const tk_hub_model& model) {
  auto text = [](tk_view view) { return std::string(textkit::view(view)); };
  return {
      text(model.name),
      text(model.path),
      text(model.revision),
      text(model.format),
      model.bytes,
      model.complete};
}

std::uint64_t bytes_in(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    if (it->is_regular_file(ignored)) bytes += it->file_size(ignored);
  }
  return bytes;
}

std::optional<InstalledModel> model_at(const fs::path& path) {
  std::error_code error;
  const std::string name = path.string();
  if (path.extension() == ".gguf" && fs::is_regular_file(path, error)) {
    return InstalledModel{name, name, "", "gguf", fs::file_size(path, error)};
  }
  if (fs::exists(path / "config.json", error)) {
    return InstalledModel{name, name, "", "safetensors", bytes_in(path)};
  }
  return std::nullopt;
}

std::vector<InstalledModel> models_in(const fs::path& folder) {
  std::vector<InstalledModel> models;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (auto model = model_at(it->path())) models.push_back(*std::move(model));
  }
  std::ranges::sort(models, {}, &InstalledModel::name);
  return models;
}

}  // namespace

Result<std::vector<InstalledModel>> installed_models(
    std::span<const fs::path> folders
) {
  std::vector<InstalledModel> models;
  for (const fs::path& folder : folders) {
    std::ranges::move(models_in(folder), std::back_inserter(models));
  }
  tk_hub_models* raw = nullptr;
  tk_buffer message{};
  const tk_code code = tk_hub_installed(&raw, &message);
  if (code != TK_OK) return take_error("hub.installed", code, message);
  const ModelList list(raw, &tk_hub_models_free);
  for (std::size_t i = 0; i < tk_hub_models_size(list.get()); ++i) {
    models.push_back(to_model(tk_hub_models_at(list.get(), i)));
  }
  return models;
}

Result<std::string> hub_cache() {
  tk_buffer path{};
  tk_buffer message{};
  const tk_code code = tk_hub_cache(&path, &message);
  if (code != TK_OK) return take_error("hub.cache", code, message);
  return textkit::take(path);
}

}  // namespace afterglow
