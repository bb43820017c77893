#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace afterglow {

/// A command adds its subcommand with flags to the app, and sets the action
/// to be run when it is the one given. The action returns the exit status.
using Action = std::function<int()>;
void add_serve_command(CLI::App& app, Action& action);
void add_generate_command(CLI::App& app, Action& action);
void add_chat_command(CLI::App& app, Action& action);
void add_cache_prompt_command(CLI::App& app, Action& action);
void add_bench_command(CLI::App& app, Action& action);
void add_cache_command(CLI::App& app, Action& action);
void add_models_command(CLI::App& app, Action& action);

/// Parses the command line and runs its command. Returns the exit status:
/// 0 for success, 1 for a failure, 2 for a wrong command line.
int run_command(int argc, char** argv);

}  // namespace afterglow
