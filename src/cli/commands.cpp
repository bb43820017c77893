#include "cli/commands.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace afterglow {
namespace {

/// The commands below one; groups of flags, which have no name, are none.
std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) {
    return !command->get_name().empty();
  });
}

/// True for a first argument that is neither a flag nor a command.
bool unknown_command(const CLI::App& app, const std::string& word) {
  if (word.empty() || word.front() == '-') return false;
  return std::ranges::none_of(commands_of(app), [&](const CLI::App* command) {
    return command->check_name(word);
  });
}

std::string command_names(const CLI::App& app) {
  std::string names;
  for (const CLI::App* command : commands_of(app)) {
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  return names;
}

}  // namespace

int run_command(int argc, char** argv) {
  CLI::App app(
      "A local LLM server and command line whose prompt cache survives "
      "everything.",
      "afterglow"
  );
  app.set_version_flag("--version", AFTERGLOW_VERSION);
  app.require_subcommand(1);
  Action action;
  add_serve_command(app, action);
  add_generate_command(app, action);
  add_chat_command(app, action);
  add_cache_prompt_command(app, action);
  add_cache_command(app, action);
  add_models_command(app, action);
  add_bench_command(app, action);

  const CLI::App* parent = &app;
  for (int i = 1; i < argc && !commands_of(*parent).empty(); ++i) {
    if (unknown_command(*parent, argv[i])) {
      std::fprintf(
          stderr,
          "afterglow: there is no command '%s'; the commands are: %s\n",
          argv[i],
          command_names(*parent).c_str()
      );
      return 2;
    }
    if (argv[i][0] == '\0' || argv[i][0] == '-') break;
    parent = parent->get_subcommand(argv[i]);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return action();
}

}  // namespace afterglow
