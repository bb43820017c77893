#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/memory_size.h"
#include "cli/commands.h"
#include "cli/engine_flags.h"
#include "cli/event_queue.h"
#include "api/progress_bar.h"
#include "cli/report_error.h"
#include "cli/signals.h"
#include "engine/text_assembler.h"
#include "store/mlx_cache_file.h"

namespace afterglow {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto kTick = 50ms;
constexpr auto kFlushTime = 30s;

struct GenerateFlags {
  EngineOptions engine;
  SamplingFlags sampling;
  std::string prompt = "hello";
  std::optional<std::string> system_prompt;
  std::int64_t max_tokens = 100;
  std::optional<std::uint64_t> seed;
  bool ignore_chat_template = false;
  bool verbose = true;
};

/// mlx_lm lets a prompt on the command line say \n and \t.
std::string unescape(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = i + 1 < text.size() ? text[i + 1] : 0;
    if (text[i] == '\\' && (next == 'n' || next == 't')) {
      result += next == 'n' ? '\n' : '\t';
      ++i;
    } else {
      result += text[i];
    }
  }
  return result;
}

std::string read_prompt(const std::string& flag) {
  if (flag != "-") return unescape(flag);
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

/// As mlx_lm.generate does: what is said goes on where the file's prompt ends.
Result<PreparedPrompt> continue_file(
    const std::vector<std::string>& files, Result<PreparedPrompt> rest
) {
  if (files.empty() || !rest.ok()) return rest;
  if (files.size() > 1) {
    return Error{
        Code::kInvalidArgument,
        "[cli.prompt] a prompt continues one --prompt-cache-file, not several"};
  }
  auto file = MlxCacheFile::open(files.front());
  if (!file.ok()) return file.error();
  if (!file->stamp()) {
    return Error{
        Code::kInvalidArgument,
        "[cli.prompt] " + files.front() + ": changed since it was loaded"};
  }
  PreparedPrompt prompt{file->stamp()->tokens, {}};
  prompt.tokens.insert(
      prompt.tokens.end(), rest->tokens.begin(), rest->tokens.end()
  );
  return prompt;
}

Result<PreparedPrompt> prepare(
    const Engine& engine, const GenerateFlags& flags, const std::string& prompt
) {
  const std::vector<std::string>& files = flags.engine.prompt_cache_files;
  if (flags.ignore_chat_template) {
    return continue_file(files, engine.prepare_text(prompt));
  }
  auto messages = nlohmann::ordered_json::array();
  if (flags.system_prompt) {
    messages.push_back({{"role", "system"}, {"content", *flags.system_prompt}});
  }
  messages.push_back({{"role", "user"}, {"content", prompt}});
  std::string text;
  try {
    text = messages.dump();
  } catch (const nlohmann::json::type_error&) {
    return Error{
        Code::kInvalidArgument, "[cli.prompt] the prompt is not valid UTF-8"};
  }
  if (!files.empty()) {
    return continue_file(files, engine.prepare_rest_of_chat(text));
  }
  auto prepared = engine.prepare_chat(text, {}, {});
  // As mlx_lm does for a model without a template.
  const bool plain = !prepared.ok() && !flags.system_prompt &&
                     prepared.error().code == Code::kUnsupported;
  return plain ? engine.prepare_text(prompt) : prepared;
}

GenerationRequest make_request(
    const Engine& engine, const GenerateFlags& flags, PreparedPrompt prompt
) {
  GenerationRequest request;
  request.prompt = std::move(prompt.tokens);
  request.boundaries = std::move(prompt.boundaries);
  request.sampling.temperature = flags.sampling.temperature;
  request.sampling.top_p = flags.sampling.top_p;
  request.sampling.top_k = flags.sampling.top_k;
  request.sampling.min_p = flags.sampling.min_p;
  request.sampling.seed = flags.seed;
  request.max_tokens = flags.max_tokens < 0
                           ? engine.info().context_length
                           : static_cast<std::size_t>(flags.max_tokens);
  request.stop_tokens = engine.info().stop_tokens;
  return request;
}

double per_second(std::size_t count, double ms) {
  return ms > 0 ? 1000.0 * static_cast<double>(count) / ms : 0;
}

/// On stderr, so that stdout holds the text alone.
void print_statistics(const Timings& timings, bool any_text) {
  std::fprintf(stderr, "==========\n");
  if (!any_text) {
    std::fprintf(stderr, "No text generated for this prompt\n");
  }
  std::fprintf(
      stderr,
      "Prompt: %zu tokens (%zu cached), %.3f tokens-per-sec\n"
      "Generation: %zu tokens, %.3f tokens-per-sec\n"
      "Peak memory: %.3f GB\n",
      timings.cache_n + timings.prompt_n,
      timings.cache_n,
      per_second(timings.prompt_n, timings.prompt_ms),
      timings.predicted_n,
      per_second(timings.predicted_n, timings.predicted_ms),
      static_cast<double>(peak_memory()) / 1e9
  );
}

/// Prints a request's text as it comes, until the end, a signal, or a reader
/// that went away.
class Printer {
 public:
  Printer(Engine& engine, Signals& signals)
      : engine_(engine), signals_(signals), text_(engine.tokenizer(), {}) {}

  /// Errors: what the engine failed with.
  Result<Finished> run(RequestId id, EventQueue& events) {
    for (;;) {
      if (signals_.wait(0ms)) interrupt(id);
      std::optional<Event> event = events.pop(kTick);
      if (!event) continue;
      if (const auto* progress = std::get_if<Progress>(&*event)) {
        bar_.show(progress->done, progress->total);
      } else if (const auto* token = std::get_if<TokenOut>(&*event)) {
        if (!print(text_.push(token->token))) engine_.cancel(id);
      } else if (const auto* failed = std::get_if<Failed>(&*event)) {
        bar_.clear();
        return failed->error;
      } else {
        print(text_.finish());
        bar_.clear();
        return std::get<Finished>(*event);
      }
    }
  }
  bool any_text() const { return any_text_; }

 private:
  bool print(const std::string& text) {
    if (text.empty()) return true;
    bar_.clear();
    any_text_ = true;
    std::fwrite(text.data(), 1, text.size(), stdout);
    return std::fflush(stdout) == 0;
  }
  void interrupt(RequestId id) {
    // A second one means: at once. What is on disk stays whole.
    if (std::exchange(interrupted_, true)) std::_Exit(130);
    engine_.cancel(id);
  }

  Engine& engine_;
  Signals& signals_;
  TextAssembler text_;
  ProgressBar bar_;
  bool interrupted_ = false;
  bool any_text_ = false;
};

int generate(const GenerateFlags& flags) {
  const std::string prompt = read_prompt(flags.prompt);
  Signals signals;
  auto loaded = load_engine(flags.engine);
  if (!loaded.ok()) return report_error(loaded.error());
  Engine& engine = **loaded;

  auto prepared = prepare(engine, flags, prompt);
  if (!prepared.ok()) return report_error(prepared.error());
  auto request = make_request(engine, flags, *std::move(prepared));
  const auto events = std::make_shared<EventQueue>();
  request.sink = events;
  const auto id = engine.submit(std::move(request));
  if (!id.ok()) return report_error(id.error());

  if (flags.verbose) std::fprintf(stderr, "==========\n");
  Printer printer(engine, signals);
  const auto finished = printer.run(*id, *events);
  const auto now = steady_clock::now();
  const bool flushed = engine.shutdown(now, now + kFlushTime);
  if (!finished.ok()) return report_error(finished.error());
  std::printf("\n");
  std::fflush(stdout);
  if (flags.verbose) print_statistics(finished->timings, printer.any_text());
  if (!flushed) {
    std::fprintf(
        stderr, "afterglow: some of the prompt cache did not reach the disk\n"
    );
  }
  return finished->reason == FinishReason::kCancelled ? 130 : 0;
}

}  // namespace

void add_generate_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App* command =
      app.add_subcommand("generate", "Answer one prompt and print the text");
  add_model_flags(*command, flags->engine);
  command
      ->add_option(
          "-p,--prompt", flags->prompt, "The message ('-': standard input)"
      )
      ->capture_default_str();
  command->add_option(
      "--system-prompt", flags->system_prompt, "A system message before it"
  );
  command
      ->add_option(
          "-m,--max-tokens",
          flags->max_tokens,
          "Most tokens to generate (-1: until the context is full)"
      )
      ->check(CLI::Range(std::int64_t{-1}, std::int64_t{1} << 40))
      ->capture_default_str();
  add_sampling_flags(*command, flags->sampling);
  command->add_option("--seed", flags->seed, "Seed of the draws");
  command->add_flag(
      "--ignore-chat-template",
      flags->ignore_chat_template,
      "Continue the prompt as plain text"
  );
  command
      ->add_option(
          "--verbose",
          flags->verbose,
          "Print speed and memory at the end, on stderr: True or False"
      )
      ->default_str("True");
  add_cache_flags(*command, flags->engine);
  command->callback([flags, &action] {
    action = [flags] { return generate(*flags); };
  });
}

}  // namespace afterglow
