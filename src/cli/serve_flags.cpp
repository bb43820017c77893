#include "cli/serve_flags.h"

#include <CLI/CLI.hpp>

#include "cli/refused_flags.h"

namespace afterglow {

void add_serve_flags(CLI::App& command, ServeFlags& flags) {
  add_model_flags(command, flags.engine);
  command.add_option("--host", flags.http.host, "Address to listen on")
      ->capture_default_str();
  command
      .add_option("--port", flags.http.port, "Port to listen on (0: any free)")
      ->capture_default_str();
  add_request_sampling_flags(command, flags.sampling);
  command
      .add_option(
          "--max-tokens",
          flags.max_tokens,
          "Most tokens of an answer, where a request does not say"
      )
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
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
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      .add_option(
          "--prompt-concurrency",
          flags.engine.prompt_concurrency,
          "Most prompts that are read at once"
      )
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--log-level", flags.log_level, "Least level to log")
      ->transform(CLI::IsMember(
          {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}, CLI::ignore_case
      ))
      ->capture_default_str();
}

}  // namespace afterglow
