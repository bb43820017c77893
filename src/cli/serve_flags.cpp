#include "cli/serve_flags.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/flag_checks.h"
#include "cli/refused_flags.h"

namespace afterglow {
namespace {

std::string check_template_variables(const std::string& text) {
  const auto variables = nlohmann::json::parse(text, nullptr, false);
  if (!variables.is_object()) return "it is not a JSON object";
  if (variables.contains("messages") || variables.contains("tools")) {
    return "it must not replace 'messages' or 'tools'";
  }
  return {};
}

std::string check_token_limit(std::string text) {
  static_assert(kNoTokenLimit == -1);
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  const bool good = text == "-1" || whole_number(1, kMost)(text).empty();
  return good ? "" : "must be a whole number from 1, or -1";
}

}  // namespace

void add_serve_flags(CLI::App& command, ServeFlags& flags) {
  add_model_flags(command, flags.engine);
  command.add_option("--host", flags.http.host, "Address to listen on")
      ->check(not_empty())
      ->capture_default_str();
  command
      .add_option("--port", flags.http.port, "Port to listen on (0: any free)")
      ->check(whole_number(0, 65535))
      ->capture_default_str();
  add_access_flags(command, flags.access, flags.http);
  add_request_sampling_flags(command, flags.sampling);
  command
      .add_option(
          "--max-tokens",
          flags.requests.max_tokens,
          "Most tokens of an answer, where a request does not say (-1: until "
          "the context is full)"
      )
      ->check(CLI::Validator(check_token_limit, ""))
      ->capture_default_str();
  command
      .add_option(
          "--chat-template-args",
          flags.requests.chat_template_args,
          "Variables of the chat template as a JSON object, where a request's "
          "chat_template_kwargs do not set them"
      )
      ->check(CLI::Validator(check_template_variables, "", "JSON object"))
      ->type_name("JSON");
  add_cache_flags(command, flags.engine);
  add_refused_flags(command, MlxProgram::kServer);
  command
      .add_option(
          "--prompt-cache-file",
          flags.engine.prompt_cache_files,
          "Preload and pin an exported prompt cache (repeatable)"
      )
      ->type_name("FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_flag(
      "--cache-namespaces",
      flags.engine.cache_namespaces,
      "Clients with different API keys or prompt_cache_keys share no prompts"
  );
  command
      .add_option(
          "--decode-concurrency",
          flags.engine.decode_concurrency,
          "Most answers that are generated at once"
      )
      ->check(whole_number(1))
      ->capture_default_str();
  command
      .add_option(
          "--prompt-concurrency",
          flags.engine.prompt_concurrency,
          "Most prompts that are read at once"
      )
      ->check(whole_number(1))
      ->capture_default_str();
  command
      .add_option(
          "--prefill-step-size",
          flags.engine.prefill_step_size,
          "Most prompt tokens that are read between two tokens of others"
      )
      ->check(whole_number(1))
      ->capture_default_str();
  command
      .add_option(
          "--queue-limit",
          flags.engine.queue_limit,
          "Most requests that wait; others are answered 429"
      )
      ->check(whole_number(0))
      ->capture_default_str();
  command
      .add_option(
          "--drain-seconds",
          flags.drain_seconds,
          "How long running answers may go on after SIGTERM"
      )
      ->check(whole_number(0, 86400))
      ->capture_default_str();
  command.add_option("--log-level", flags.log_level, "Least level to log")
      ->transform(CLI::IsMember(
          {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}, CLI::ignore_case
      ))
      ->capture_default_str();
}

}  // namespace afterglow
