#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/default_model.h"
#include "cli/download_model.h"
#include "cli/human.h"
#include "cli/report_error.h"
#include "cli/text_table.h"
#include "hub/installed.h"

namespace afterglow {
namespace {

void print_table(
    const std::vector<InstalledModel>& models, const std::string& cache
) {
  if (models.empty()) {
    std::printf(
        "No models here, neither beside the program nor in %s.\n"
        "`afterglow models pull organization/name` downloads one.\n",
        cache.c_str()
    );
    return;
  }
  TextTable table({{"NAME"}, {"FORMAT"}, {"SIZE", true}, {"REVISION"}});
  std::uint64_t bytes = 0;
  for (const InstalledModel& model : models) {
    bytes += model.bytes;
    table.add(
        {model.name,
         model.complete ? model.format : "incomplete",
         human_bytes(model.bytes),
         model.revision.substr(0, 12)}
    );
  }
  std::printf(
      "%s\n%s, %s; the hub's cache is %s\n",
      table.format().c_str(),
      human_count(models.size(), "model").c_str(),
      human_bytes(bytes).c_str(),
      cache.c_str()
  );
}

void print_json(
    const std::vector<InstalledModel>& models, const std::string& cache
) {
  nlohmann::ordered_json json{
      {"hub_cache", cache}, {"models", nlohmann::ordered_json::array()}};
  for (const InstalledModel& model : models) {
    json["models"].push_back(
        {{"name", model.name},
         {"path", model.path},
         {"revision", model.revision},
         {"format", model.format},
         {"bytes", model.bytes},
         {"complete", model.complete}}
    );
  }
  auto replace = nlohmann::ordered_json::error_handler_t::replace;
  std::printf("%s\n", json.dump(2, ' ', false, replace).c_str());
}

int list_models(bool json) {
  const auto cache = hub_cache();
  if (!cache.ok()) return report_error(cache.error());
  const auto folders = model_folders(program_directory());
  const auto models = installed_models(folders);
  if (!models.ok()) return report_error(models.error());
  json ? print_json(*models, *cache) : print_table(*models, *cache);
  return 0;
}

int pull(const std::string& name) {
  const auto path = download_model(name, true);
  if (!path.ok()) return report_error(path.error());
  std::printf("%s\n", path->c_str());
  return 0;
}

void add_pull_command(CLI::App& models, Action& action) {
  auto name = std::make_shared<std::string>();
  CLI::App* command = models.add_subcommand(
      "pull", "Download a model of the hub, or its newest version"
  );
  command->add_option("name", *name, "organization/name, or one GGUF file")
      ->type_name("NAME")
      ->required();
  command->footer(
      "NAME is that of a model on the Hugging Face hub, organization/name. "
      "One GGUF file\nof several is organization/name:Q4_K_M or "
      "organization/name:file.gguf. The path is\nprinted at the end. What "
      "Ctrl-C or a broken network cuts short, the next one\ncontinues."
  );
  command->callback([name, &action] { action = [name] { return pull(*name); }; }
  );
}

}  // namespace

void add_models_command(CLI::App& app, Action& action) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "models", "What models are here, where, how large; download more"
  );
  command->add_flag("--json", *json, "Print JSON, for programs");
  command->require_subcommand(0, 1);
  add_pull_command(*command, action);
  command->footer(
      "NAME is what --model takes. Models of the hub lie in the cache of the "
      "Python package\nhuggingface_hub (HF_HOME), and `hf cache rm` removes "
      "them."
  );
  command->callback([json, command, &action] {
    if (!command->get_subcommands().empty()) return;
    action = [json] { return list_models(*json); };
  });
}

}  // namespace afterglow
