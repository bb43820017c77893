#include "cli/engine_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "api/model_state.h"
#include "api/raise.h"
#include "cli/chat_template_flag.h"
#include "cli/default_model.h"
#include "cli/flag_checks.h"
#include "cli/parse_duration.h"
#include "cli/parse_size.h"
#include "engine/xtc_special_tokens.h"

namespace afterglow {
namespace {

void add_size(
    CLI::App& command,
    const std::string& name,
    std::optional<std::uint64_t>& target,
    const std::string& help,
    std::uint64_t least = 0
) {
  command
      .add_option_function<std::string>(
          name,
          [&target, name, least](const std::string& text) {
            const auto size = parse_size(text);
            if (!size.ok()) {
              throw CLI::ValidationError(name, size.error().message);
            }
            if (*size < least) {
              throw CLI::ValidationError(
                  name, "must be at least " + std::to_string(least)
              );
            }
            target = *size;
          },
          help
      )
      ->type_name("SIZE");
}

/// Seconds, or a number with a unit. A fraction of a nanosecond is cut off; a
/// time to live is at least one.
std::chrono::nanoseconds to_ttl(const std::string& text) {
  constexpr double kMost = 9e9;  // within what 64 bits of nanoseconds hold
  double seconds = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, seconds);
  if (read.ec != std::errc() || read.ptr != end) {
    const auto span = parse_duration(text);
    if (span.ok()) return std::chrono::nanoseconds(*span);
    throw CLI::ValidationError("--prompt-cache-ttl", span.error().message);
  }
  if (!(seconds >= 0 && seconds <= kMost)) {
    throw CLI::ValidationError(
        "--prompt-cache-ttl", "must be between 0 and 9000000000 seconds"
    );
  }
  const std::chrono::nanoseconds ttl(static_cast<std::int64_t>(seconds * 1e9));
  return seconds > 0 && ttl.count() == 0 ? std::chrono::nanoseconds(1) : ttl;
}

SamplingParams params_of(const SamplingFlags& flags) {
  SamplingParams params;
  params.temperature = flags.temperature;
  params.top_p = flags.top_p;
  params.top_k = flags.top_k;
  params.min_p = flags.min_p;
  params.min_tokens_to_keep = flags.min_tokens_to_keep;
  params.xtc_probability = flags.xtc_probability;
  params.xtc_threshold = flags.xtc_threshold;
  return params;
}

std::string flag_of(std::string parameter) {
  if (parameter == "temperature") return "--temp";
  std::ranges::replace(parameter, '_', '-');
  return "--" + parameter;
}

}  // namespace

void add_model_flags(CLI::App& command, EngineOptions& options) {
  command
      .add_option(
          "--model",
          options.model,
          "A GGUF file, a model directory, or a model of the Hugging Face hub "
          "(organization/name; default: the one set-up installed)"
      )
      ->type_name("MODEL");
  command
      .add_option_function<std::string>(
          "--backend",
          [&options](const std::string& name) {
            options.backend = name == "mlx" ? Backend::kMlx : Backend::kCpu;
          },
          "What computes: cpu or mlx"
      )
      ->check(CLI::IsMember({"cpu", "mlx"}))
      ->type_name("NAME")
      ->default_str("cpu");
  command
      .add_option_function<std::string>(
          "--activations",
          [&options](const std::string& name) {
            const auto mode = parse_activations(name);
            if (!mode.ok()) {
              throw CLI::ValidationError("--activations", mode.error().message);
            }
            options.activations = *mode;
          },
          "How the CPU rounds inputs: int16, int8 (fastest) or f32 (exact)"
      )
      ->type_name("MODE")
      ->default_str("int16");
  command
      .add_option(
          "--threads", options.threads, "Threads that compute (0: all cores)"
      )
      ->check(whole_number(0, 1024))
      ->capture_default_str();
  command
      .add_option_function<std::string>(
          "--chat-template",
          [&options](const std::string& value) {
            auto text = read_chat_template(value);
            if (!text.ok()) {
              throw CLI::ValidationError(
                  "--chat-template", text.error().message
              );
            }
            options.chat_template = *std::move(text);
          },
          "A chat template in place of the model's own: Jinja text, or a file "
          "whose name ends in .jinja"
      )
      ->type_name("TEXT");
}

void add_cache_flags(CLI::App& command, LoadOptions& options) {
  command
      .add_option(
          "--prompt-cache-dir",
          options.prompt_cache_dir,
          "Keep the prompt cache in this directory, over restarts"
      )
      ->check(not_empty())
      ->type_name("DIR");
  command
      .add_option(
          "--prompt-cache-size",
          options.prompt_cache_size,
          "Most prompts to keep (default: no limit)"
      )
      ->check(whole_number(0));
  add_size(
      command,
      "--prompt-cache-bytes",
      options.prompt_cache_bytes,
      "Most memory the prompt cache may take (default: 25 % of memory)"
  );
  add_size(
      command,
      "--prompt-cache-disk-bytes",
      options.prompt_cache_disk_bytes,
      "Most disk it may take (default: 20 GiB or 10 % of what is free)",
      1
  );
  add_size(
      command,
      "--prompt-cache-daily-writes",
      options.prompt_cache_daily_writes,
      "Most bytes all servers on the directory write a day (default: no limit)",
      1
  );
  command
      .add_option_function<std::string>(
          "--prompt-cache-ttl",
          [&options](const std::string& text) {
            options.prompt_cache_ttl = to_ttl(text);
          },
          "Forget prompts not used for so many seconds, or 90m, 12h, 7d "
          "(default and 0: never)"
      )
      ->type_name("TIME");
  add_size(
      command,
      "--memory-limit",
      options.memory_limit,
      "Most memory for model, requests and cache (default: 80 % of memory)"
  );
}

void add_request_sampling_flags(CLI::App& command, SamplingFlags& flags) {
  command
      .add_option("--temp", flags.temperature, "Temperature (0: most likely)")
      ->check(real_number(0))
      ->capture_default_str();
  command.add_option("--top-p", flags.top_p, "Nucleus sampling (1: off)")
      ->check(real_number(0, 1))
      ->capture_default_str();
  command.add_option("--top-k", flags.top_k, "Most likely tokens (0: all)")
      ->check(whole_number(0))
      ->capture_default_str();
  command.add_option("--min-p", flags.min_p, "Least probability (0: off)")
      ->check(real_number(0, 1))
      ->capture_default_str();
}

void add_sampling_flags(CLI::App& command, SamplingFlags& flags) {
  add_request_sampling_flags(command, flags);
  command
      .add_option(
          "--min-tokens-to-keep",
          flags.min_tokens_to_keep,
          "Tokens that --min-p leaves at least"
      )
      ->check(whole_number(1))
      ->capture_default_str();
  command
      .add_option(
          "--xtc-probability",
          flags.xtc_probability,
          "How often XTC leaves out the most likely tokens (0: never)"
      )
      ->check(real_number(0, 1))
      ->capture_default_str();
  command
      .add_option(
          "--xtc-threshold",
          flags.xtc_threshold,
          "Of tokens more likely than this XTC keeps only the least likely"
      )
      ->check(real_number(0, 0.5))
      ->capture_default_str();
}

void check_together(const LoadOptions& options) {
  if (options.backend == Backend::kMlx && options.activations) {
    throw CLI::ValidationError(
        "--activations", "is for --backend cpu; MLX has its own"
    );
  }
  if (!options.prompt_cache_dir.empty()) return;
  for (const auto& [name, given] :
       {std::pair("--prompt-cache-disk-bytes", options.prompt_cache_disk_bytes),
        std::pair(
            "--prompt-cache-daily-writes", options.prompt_cache_daily_writes
        )}) {
    if (!given) continue;
    throw CLI::ValidationError(
        name, "needs --prompt-cache-dir; without it nothing is written"
    );
  }
}

Status check_sampling(const SamplingFlags& flags, const ModelInfo& model) {
  const auto fault = find_fault(params_of(flags), model.vocab_size);
  if (!fault) return {};
  const std::string_view parameter = fault->parameter;
  return Error{
      Code::kInvalidArgument,
      "[cli.flags] " + flag_of(std::string(parameter)) +
          fault->message.substr(parameter.size())};
}

SamplingParams sampling_params(
    const SamplingFlags& flags,
    const Model& model,
    const std::vector<Token>& stop_tokens
) {
  if (const Status good = check_sampling(flags, model.info()); !good.ok()) {
    raise(good.error());
  }
  SamplingParams params = params_of(flags);
  if (flags.xtc_probability > 0) {
    params.xtc_special_tokens =
        xtc_special_tokens(model.state()->engine().tokenizer(), stop_tokens);
  }
  return params;
}

Result<std::unique_ptr<Engine>> load_engine(EngineOptions options) {
  auto model = model_or_default(options.model);
  if (!model.ok()) return model.error();
  options.model = *std::move(model);
  return Engine::load(options);
}

Model load_public_model(const EngineOptions& options) {
  return load(require(model_or_default(options.model)), options);
}

}  // namespace afterglow
