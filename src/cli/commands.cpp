#include "cli/commands.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/near_name.h"

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

/// Long names without dashes; but those that are refused.
std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) flags.push_back(name);
  }
  for (const CLI::App* group : command.get_subcommands({})) {
    if (!group->get_name().empty()) continue;
    for (std::string& name : flags_of(*group)) flags.push_back(std::move(name));
  }
  return flags;
}

/// What to say of the first flag that neither `command`, whose whole name is
/// given, nor those that the line names below it have; "": none.
std::string unknown_flag(const CLI::App& command, const std::string& whole) {
  for (const std::string& word : command.remaining()) {
    if (word == "--") break;
    if (word.size() < 2 || word.front() != '-') continue;
    const std::string flag = word.substr(0, word.find('='));
    const std::string name = flag.substr(flag.find_first_not_of('-'));
    return whole + " has no flag " + flag +
           did_you_mean(name, flags_of(command), "--");
  }
  for (const CLI::App* below : command.get_subcommands()) {
    std::string text = unknown_flag(*below, whole + " " + below->get_name());
    if (!text.empty()) return text;
  }
  return {};
}

/// Prints what is wrong with the line; a flag that does not exist comes before
/// one that is missing, for which it may have been meant.
void report_line(const CLI::App& app, const CLI::ParseError& error) {
  const bool may_be_a_flags =
      dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
      dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  const std::string text =
      may_be_a_flags ? unknown_flag(app, app.get_name()) : std::string();
  if (text.empty()) {
    app.exit(error);
  } else {
    app.exit(CLI::ParseError(text, CLI::ExitCodes::ExtrasError));
  }
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
    report_line(app, error);
    return error.get_exit_code() == 0 ? 0 : 2;
  }
  return action();
}

}  // namespace afterglow
