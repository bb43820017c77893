#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/raise.h"
#include "cli/chat/chat_loop.h"
#include "cli/chat/line_history.h"
#include "cli/close_model.h"
#include "cli/commands.h"
#include "cli/engine_flags.h"
#include "cli/flag_sources.h"
#include "cli/refused_flags.h"
#include "cli/report_error.h"

namespace afterglow {
namespace {

struct ChatFlags {
  EngineOptions engine;
  SamplingFlags sampling;
  std::optional<std::string> system_prompt;
  std::int64_t max_tokens = 256;
  std::uint64_t seed = 0;
  std::string load;
  bool go_on = false;
  std::optional<bool> verbose;
};

/// A person sits there, as opposed to a pipe.
bool at_terminal() {
  return ::isatty(STDIN_FILENO) == 1 &&
         (::isatty(STDOUT_FILENO) == 1 || ::isatty(STDERR_FILENO) == 1);
}

GenerateOptions make_options(const Model& model, const ChatFlags& flags) {
  GenerateOptions options;
  options.sampling =
      sampling_params(flags.sampling, model, model.info().stop_tokens);
  options.sampling.seed = flags.seed;
  options.max_tokens = flags.max_tokens < 0
                           ? model.info().context_length
                           : static_cast<std::size_t>(flags.max_tokens);
  return options;
}

/// Throws: what the directory is refused for; by then the model's loading has
/// made it.
std::optional<LastChat> last_chat(const ChatFlags& flags) {
  const std::string& directory = flags.engine.prompt_cache_dir;
  if (directory.empty()) return std::nullopt;
  return LastChat(require(open_posix_file_system(directory)));
}

void greet(ChatScreen& screen, const ModelInfo& info) {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.2f s", info.load_seconds);
  screen.note(
      info.name + " (" + info.architecture + ", " + info.quantization + ", " +
      info.backend + "), loaded in " + seconds +
      "\n/help lists the commands, Ctrl-D ends."
  );
}

int chat(const ChatFlags& flags) {
  Model model = load_public_model(flags.engine);
  Signals signals;
  signals.also({SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH});
  if (!model.info().has_chat_template) {
    raise(
        {Code::kInvalidArgument,
         "[chat] the model has no chat template; give it one with "
         "--chat-template"}
    );
  }
  const bool person = at_terminal();
  auto last = last_chat(flags);
  ChatScreen screen;
  ChatSession session(model, make_options(model, flags), flags.system_prompt);
  const auto lines = person ? edited_lines(signals, default_history_file())
                            : piped_lines(signals);
  ChatLoop loop(
      session,
      *lines,
      screen,
      signals,
      last ? &*last : nullptr,
      flags.verbose.value_or(person)
  );
  if (person) greet(screen, model.info());
  if (!flags.load.empty()) loop.load(flags.load);
  if (flags.go_on) loop.take_up_last();
  const int status = loop.run();
  close_model(model, signals);
  return status;
}

}  // namespace

void add_chat_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ChatFlags>();
  CLI::App* command = app.add_subcommand("chat", "Talk with a model");
  add_model_flags(*command, flags->engine);
  CLI::Option* system = command->add_option(
      "--system-prompt", flags->system_prompt, "A system message before all"
  );
  command
      ->add_option(
          "-m,--max-tokens",
          flags->max_tokens,
          "Most tokens of an answer (-1: until the context is full)"
      )
      ->check(CLI::Range(std::int64_t{-1}, std::int64_t{1} << 40))
      ->capture_default_str();
  add_sampling_flags(*command, flags->sampling);
  command->add_option("--seed", flags->seed, "Seed of the draws")
      ->capture_default_str();
  CLI::Option* load =
      command
          ->add_option(
              "--load", flags->load, "Take up a conversation that /save wrote"
          )
          ->type_name("FILE")
          ->excludes(system);
  command
      ->add_flag(
          "-c,--continue",
          flags->go_on,
          "Take up the last conversation of the --prompt-cache-dir"
      )
      ->excludes(system)
      ->excludes(load);
  command
      ->add_option(
          "--verbose",
          flags->verbose,
          "A line about tokens and speed after each answer, on stderr: True or "
          "False"
      )
      ->default_str("True at a terminal");
  add_cache_flags(*command, flags->engine);
  add_refused_flags(*command, MlxProgram::kChat);
  command->callback([flags, command, &action] {
    apply_shared_environment(*command);
    check_together(flags->engine);
    if (flags->go_on && flags->engine.prompt_cache_dir.empty()) {
      throw CLI::ValidationError(
          "--continue",
          "needs --prompt-cache-dir, where the last conversation is kept"
      );
    }
    action = [flags] {
      return report_exceptions([&] { return chat(*flags); });
    };
  });
}

}  // namespace afterglow
