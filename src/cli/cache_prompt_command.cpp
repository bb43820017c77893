#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <vector>

#include "afterglow/generate.h"
#include "api/raise.h"
#include "base/memory_size.h"
#include "cli/close_model.h"
#include "cli/commands.h"
#include "cli/engine_flags.h"
#include "cli/flag_sources.h"
#include "cli/prompt_text.h"
#include "cli/refused_flags.h"
#include "cli/report_error.h"
#include "cli/signals.h"
#include "cli/stop_token.h"

namespace afterglow {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto kTick = 50ms;

struct CachePromptFlags {
  EngineOptions engine;
  std::string prompt;
  std::string file;
  std::string eos_token;
};

/// How far the prompt is read, as mlx_lm.cache_prompt says it: one line, which
/// a terminal shows from the start on.
class ProgressLine {
 public:
  void show(std::size_t done, std::size_t total) {
    done_ = done;
    if (terminal_ && done < total) print();
  }
  void finish() {
    print();
    std::printf("\n");
  }

 private:
  void print() {
    const std::chrono::duration<double> time = steady_clock::now() - began_;
    std::printf(
        "%sProcessed %6zu tokens (%6.2f tok/s)%s",
        terminal_ ? "\r" : "",
        done_,
        time.count() > 0 ? static_cast<double>(done_) / time.count() : 0.0,
        terminal_ ? "\033[K" : ""
    );
    std::fflush(stdout);
  }

  const bool terminal_ = ::isatty(STDOUT_FILENO) == 1;
  const steady_clock::time_point began_ = steady_clock::now();
  std::size_t done_ = 0;
};

/// The cache of a prompt that is read to its end. Throws: kCancelled on a
/// signal.
CacheHistory read_prompt(
    const Model& model, const Prompt& prompt, Signals& signals
) {
  ProgressLine line;
  std::stop_source cut;
  StepOptions options;
  options.prompt_progress_callback = [&](std::size_t done, std::size_t total) {
    line.show(done, total);
  };
  options.cancel = cut.get_token();
  LogitsStream stream = generate_step(model, prompt, options);
  while (!stream.wait_for(kTick)) {
    if (signals.wait(0ms)) cut.request_stop();
  }
  stream.logits();  // or what it failed with
  line.finish();
  if (signals.wait(0ms)) {
    raise(
        {Code::kCancelled,
         "[cache_prompt] a signal came before the file was begun"}
    );
  }
  return stream.cache_history();
}

int cache_prompt(const CachePromptFlags& flags) {
  const std::string text =
      flags.prompt == "-" ? read_standard_input() : flags.prompt;
  Model model = load_public_model(flags.engine);
  Signals signals;
  auto tokenizer_config = nlohmann::json::object();
  if (!flags.eos_token.empty()) {
    find_stop_token(model, "--eos-token", flags.eos_token);
    tokenizer_config["eos_token"] = flags.eos_token;
  }
  const Prompt prompt =
      model.open_chat_prompt(std::vector<Message>{{"user", text}});
  const CacheHistory history = read_prompt(model, prompt, signals);
  std::printf("Peak memory: %.3f GB\nSaving...\n", 1e-9 * peak_memory());
  std::fflush(stdout);
  save_cache(
      flags.file,
      history,
      {{"model",
        flags.engine.model.empty() ? model.info().path : flags.engine.model},
       {"tokenizer_config", tokenizer_config.dump()}}
  );
  close_model(model, signals);
  return 0;
}

}  // namespace

void add_cache_prompt_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<CachePromptFlags>();
  CLI::App* command = app.add_subcommand(
      "cache-prompt", "Read a prompt into a file, which generate goes on from"
  );
  add_model_flags(*command, flags->engine);
  command
      ->add_option(
          "--prompt-cache-file", flags->file, "The file to write (or replace)"
      )
      ->type_name("FILE")
      ->required();
  command
      ->add_option(
          "-p,--prompt",
          flags->prompt,
          "The message, left open at its end ('-': standard input)"
      )
      ->required();
  command
      ->add_option(
          "--eos-token",
          flags->eos_token,
          "A token that ends answers after this prompt, besides the model's "
          "own: text or number"
      )
      ->type_name("TOKEN");
  add_cache_flags(*command, flags->engine);
  add_refused_flags(*command, MlxProgram::kCachePrompt);
  command->callback([flags, command, &action] {
    apply_shared_environment(*command);
    check_together(flags->engine);
    action = [flags] {
      return report_exceptions([&] { return cache_prompt(*flags); });
    };
  });
}

}  // namespace afterglow
