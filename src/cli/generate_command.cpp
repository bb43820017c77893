#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "afterglow/generate.h"
#include "api/raise.h"
#include "cli/close_model.h"
#include "cli/commands.h"
#include "cli/continued_file.h"
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

constexpr auto kTick = 50ms;

struct GenerateFlags {
  EngineOptions engine;
  SamplingFlags sampling;
  std::string prompt = "hello";
  std::optional<std::string> system_prompt;
  std::optional<std::string> prefill_response;
  std::string template_variables;  // JSON
  bool ignore_chat_template = false;
  std::string prompt_cache_file;
  std::vector<std::string> extra_eos_tokens;
  std::int64_t max_tokens = 100;
  std::optional<std::uint64_t> seed;
  bool verbose = true;
};

/// Throws: kInvalidArgument when a flag needs a template that is not there.
void check_template(const GenerateFlags& flags) {
  const char* needs = flags.system_prompt                 ? "--system-prompt"
                      : flags.prefill_response            ? "--prefill-response"
                      : !flags.template_variables.empty() ? "--chat-template-"
                                                            "config"
                                                          : nullptr;
  if (needs != nullptr) {
    raise(
        {Code::kInvalidArgument,
         std::string("[cli.prompt] ") + needs +
             ": the model has no chat template; give it one with "
             "--chat-template"}
    );
  }
}

/// The prompt, or what follows that of the file.
Prompt make_prompt(
    const Model& model,
    const GenerateFlags& flags,
    const std::string& text,
    bool goes_on
) {
  if (!flags.ignore_chat_template && !model.info().has_chat_template) {
    check_template(flags);
  }
  if (flags.ignore_chat_template || !model.info().has_chat_template) {
    return goes_on ? Prompt(model.encode(text, false)) : Prompt(text);
  }
  std::vector<Message> messages;
  if (flags.system_prompt) {
    messages.push_back({"system", *flags.system_prompt});
  }
  messages.push_back({"user", text});
  if (flags.prefill_response) {
    messages.push_back({"assistant", *flags.prefill_response});
  }
  const std::string& variables = flags.template_variables;
  if (goes_on) return model.rest_of_chat_prompt(messages, variables);
  return flags.prefill_response
             ? model.open_chat_prompt(messages, variables)
             : model.apply_chat_template(messages, variables);
}

std::vector<Token> extra_stop_tokens(
    const Model& model,
    const GenerateFlags& flags,
    const std::optional<ContinuedFile>& file
) {
  std::vector<Token> tokens;
  for (const std::string& text : flags.extra_eos_tokens) {
    tokens.push_back(find_stop_token(model, "--extra-eos-token", text));
  }
  if (const auto text = file ? file->eos_token() : std::nullopt) {
    tokens.push_back(
        find_stop_token(model, flags.prompt_cache_file + ": eos_token", *text)
    );
  }
  return tokens;
}

GenerateOptions make_options(
    const Model& model,
    const GenerateFlags& flags,
    const std::optional<ContinuedFile>& file
) {
  GenerateOptions options;
  options.stop_tokens = extra_stop_tokens(model, flags, file);
  std::vector<Token> all_stops = model.info().stop_tokens;
  all_stops.insert(
      all_stops.end(), options.stop_tokens.begin(), options.stop_tokens.end()
  );
  options.sampling = sampling_params(flags.sampling, model, all_stops);
  options.sampling.seed = flags.seed;
  options.max_tokens = flags.max_tokens < 0
                           ? model.info().context_length
                           : static_cast<std::size_t>(flags.max_tokens);
  options.verbose = flags.verbose;
  if (file) options.cache_history = file->history();
  return options;
}

/// Writes a piece of the answer; false when nobody reads it any more.
bool print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0;
}

/// Prints the text as it comes, until the end, a signal, or a reader that went
/// away. Returns why it ended.
FinishReason print_answer(
    TextStream& stream, Signals& signals, std::stop_source& cut
) {
  FinishReason reason = FinishReason::kCancelled;
  bool interrupted = false;
  for (;;) {
    const bool ready = stream.wait_for(kTick);
    if (signals.wait(0ms)) {
      // A second one means: at once. What is on disk stays whole.
      if (std::exchange(interrupted, true)) std::_Exit(130);
      cut.request_stop();
    }
    if (!ready) continue;
    const std::optional<StepOutput> output = stream.next();
    if (!output) return reason;
    if (!output->text.empty() && !print(output->text)) cut.request_stop();
    if (output->finish_reason) {
      reason = *output->finish_reason;
      print("\n");
    }
  }
}

int generate(const GenerateFlags& flags) {
  const std::string text =
      flags.prompt == "-" ? read_standard_input() : unescape(flags.prompt);
  std::optional<ContinuedFile> file;
  EngineOptions engine = flags.engine;
  if (!flags.prompt_cache_file.empty()) {
    file.emplace(flags.prompt_cache_file);
    if (engine.model.empty()) engine.model = file->model();
  }
  Model model = load_public_model(engine);
  Signals signals;
  if (file) {
    const std::string doubt =
        file->doubt(engine.model.empty() ? model.info().path : engine.model);
    if (!doubt.empty()) {
      std::fprintf(stderr, "afterglow: %s\n", doubt.c_str());
    }
  }

  Prompt prompt = make_prompt(model, flags, text, file.has_value());
  if (file) prompt = file->full_prompt(prompt);
  GenerateOptions options = make_options(model, flags, file);
  std::stop_source cut;
  options.cancel = cut.get_token();
  TextStream stream = stream_generate(model, prompt, options);
  if (flags.verbose) std::fprintf(stderr, "==========\n");
  const FinishReason reason = print_answer(stream, signals, cut);
  close_model(model, signals);
  return reason == FinishReason::kCancelled ? 130 : 0;
}

std::string check_json_object(const std::string& text) {
  return nlohmann::json::parse(text, nullptr, false).is_object()
             ? ""
             : "it is not a JSON object";
}

void add_prompt_flags(CLI::App& command, GenerateFlags& flags) {
  command
      .add_option(
          "-p,--prompt", flags.prompt, "The message ('-': standard input)"
      )
      ->capture_default_str();
  CLI::Option* system = command.add_option(
      "--system-prompt", flags.system_prompt, "A system message before it"
  );
  CLI::Option* prefill = command.add_option(
      "--prefill-response",
      flags.prefill_response,
      "The beginning of the answer, which goes on from there"
  );
  CLI::Option* variables =
      command
          .add_option(
              "--chat-template-config",
              flags.template_variables,
              "Further variables of the chat template, as a JSON object"
          )
          ->check(CLI::Validator(check_json_object, "", "JSON object"))
          ->type_name("JSON");
  command
      .add_flag(
          "--ignore-chat-template",
          flags.ignore_chat_template,
          "Continue the prompt as plain text"
      )
      ->excludes(system)
      ->excludes(prefill)
      ->excludes(variables);
  command
      .add_option(
          "--prompt-cache-file",
          flags.prompt_cache_file,
          "Go on where this file's prompt ends: one that cache-prompt or "
          "mlx_lm.cache_prompt wrote"
      )
      ->type_name("FILE")
      ->excludes(system);
}

}  // namespace

void add_generate_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App* command =
      app.add_subcommand("generate", "Answer one prompt and print the text");
  add_model_flags(*command, flags->engine);
  add_prompt_flags(*command, *flags);
  command
      ->add_option(
          "-m,--max-tokens",
          flags->max_tokens,
          "Most tokens to generate (-1: until the context is full)"
      )
      ->check(CLI::Range(std::int64_t{-1}, std::int64_t{1} << 40))
      ->capture_default_str();
  command
      ->add_option(
          "--extra-eos-token",
          flags->extra_eos_tokens,
          "Tokens that end the answer besides the model's own: texts or numbers"
      )
      ->type_name("TOKEN");
  add_sampling_flags(*command, flags->sampling);
  command->add_option("--seed", flags->seed, "Seed of the draws");
  command
      ->add_option(
          "--verbose",
          flags->verbose,
          "Print speed and memory at the end, on stderr: True or False"
      )
      ->default_str("True");
  add_cache_flags(*command, flags->engine);
  add_refused_flags(*command, MlxProgram::kGenerate);
  command->callback([flags, command, &action] {
    apply_shared_environment(*command);
    check_together(flags->engine);
    action = [flags] {
      return report_exceptions([&] { return generate(*flags); });
    };
  });
}

}  // namespace afterglow
