#pragma once

#include <string>

#include "cli/commands.h"

namespace afterglow {

// `afterglow cache <command>`: tools for a prompt-cache directory. Each
// function adds one command below `cache`.

void add_cache_list(CLI::App& cache, Action& action);
void add_cache_show(CLI::App& cache, Action& action);
void add_cache_verify(CLI::App& cache, Action& action);
void add_cache_prune(CLI::App& cache, Action& action);
void add_cache_clear(CLI::App& cache, Action& action);
void add_cache_pin(CLI::App& cache, Action& action);
void add_cache_unpin(CLI::App& cache, Action& action);
void add_cache_export(CLI::App& cache, Action& action);
void add_cache_import(CLI::App& cache, Action& action);

/// `--prompt-cache-dir`, which all of them need; the environment variable
/// AFTERGLOW_PROMPT_CACHE_DIR stands in for it.
void add_cache_dir_flag(CLI::App& command, std::string& directory);
/// `--json`: the result as one JSON object on standard output.
void add_json_flag(CLI::App& command, bool& json);

}  // namespace afterglow
