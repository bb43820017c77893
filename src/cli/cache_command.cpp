#include <CLI/CLI.hpp>

#include "cli/cache_commands.h"
#include "cli/flag_checks.h"

namespace afterglow {

void add_cache_dir_flag(CLI::App& command, std::string& directory) {
  command
      .add_option(
          "--prompt-cache-dir", directory, "The directory of the prompt cache"
      )
      ->check(not_empty())
      ->type_name("DIR")
      ->envname("AFTERGLOW_PROMPT_CACHE_DIR")
      ->required();
}

void add_json_flag(CLI::App& command, bool& json) {
  command.add_flag("--json", json, "Print JSON, for programs");
}

void add_cache_command(CLI::App& app, Action& action) {
  CLI::App* cache = app.add_subcommand(
      "cache", "Look into a prompt-cache directory and tidy it"
  );
  cache->require_subcommand(1);
  add_cache_list(*cache, action);
  add_cache_show(*cache, action);
  add_cache_verify(*cache, action);
  add_cache_prune(*cache, action);
  add_cache_clear(*cache, action);
  add_cache_pin(*cache, action);
  add_cache_unpin(*cache, action);
  add_cache_export(*cache, action);
  add_cache_import(*cache, action);
}

}  // namespace afterglow
