#include <CLI/CLI.hpp>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "cli/bench/modes.h"
#include "cli/cache_commands.h"
#include "cli/commands.h"
#include "cli/parse_size.h"

namespace afterglow {
namespace {

struct BenchFlags {
  bool of_restore = false;
  bool of_machine = false;
  bool json = false;
  SpeedFlags speed;
  PerplexityFlags perplexity;
  RestoreBenchOptions restore;
};

using Options = std::vector<CLI::Option*>;

/// One for each of the things that can be measured besides speed.
struct Modes {
  CLI::Option* info;
  CLI::Option* perplexity;
  CLI::Option* restore;
};

Modes add_modes(CLI::App& command, BenchFlags& flags) {
  Modes modes{};
  modes.info = command.add_flag(
      "--info",
      flags.of_machine,
      "Say what this machine is and which kernels it runs; measure nothing"
  );
  modes.perplexity =
      command
          .add_option(
              "--perplexity",
              flags.perplexity.file,
              "How well the activation modes predict this text, against f32 "
              "mode"
          )
          ->type_name("FILE")
          ->check(CLI::ExistingFile);
  modes.restore = command.add_flag(
      "--restore",
      flags.of_restore,
      "How fast a prompt comes back from disk, and how soon a server is ready "
      "(no model is loaded: the KV is random)"
  );
  for (CLI::Option* mode : {modes.info, modes.perplexity, modes.restore}) {
    mode->group("What to measure (without these: speed)");
  }
  return modes;
}

CLI::Option* add_sizes(
    CLI::App& command,
    const std::string& name,
    std::vector<std::size_t>& target,
    const std::string& help
) {
  return command.add_option(name, target, help)
      ->delimiter(',')
      ->type_name("N,...")
      ->check(CLI::Range(0, 1 << 20).description(""))
      ->default_str(std::to_string(target.front()));
}

/// Which model is loaded and how.
Options add_model_options(CLI::App& command, SpeedFlags& flags) {
  Options options;
  options.push_back(
      command
          .add_option(
              "-m,--model",
              flags.models,
              "GGUF files or model directories (default: the one set-up "
              "installed)"
          )
          ->delimiter(',')
          ->type_name("PATH,...")
  );
  options.push_back(
      command
          .add_option_function<std::vector<std::string>>(
              "--activations",
              [&flags](const std::vector<std::string>& names) {
                flags.activations.clear();
                for (const std::string& name : names) {
                  flags.activations.push_back(*parse_activations(name));
                }
              },
              "How the CPU rounds inputs"
          )
          ->delimiter(',')
          ->check(CLI::IsMember({"int16", "int8", "f32"}).description(""))
          ->type_name("int16|int8|f32,...")
          ->default_str("int16")
  );
  options.push_back(command
                        .add_option(
                            "-t,--threads",
                            flags.threads,
                            "Threads that compute (0: all cores)"
                        )
                        ->delimiter(',')
                        ->check(CLI::Range(0, 1024).description(""))
                        ->type_name("N,...")
                        ->capture_default_str());
  for (CLI::Option* option : options) option->group("Model");
  return options;
}

Options add_speed_options(CLI::App& command, SpeedFlags& flags) {
  Options options;
  options.push_back(command
                        .add_option_function<std::string>(
                            "--backend",
                            [&flags](const std::string& name) {
                              flags.backend =
                                  name == "mlx" ? Backend::kMlx : Backend::kCpu;
                            },
                            "What computes"
                        )
                        ->check(CLI::IsMember({"cpu", "mlx"}).description(""))
                        ->type_name("cpu|mlx")
                        ->default_str("cpu"));
  options.push_back(add_sizes(
      command,
      "-p,--n-prompt",
      flags.prompts,
      "Prompts of so many tokens (0: "
      "none)"
  ));
  options.push_back(add_sizes(
      command,
      "-n,--n-gen",
      flags.answers,
      "Answers of so many tokens (0: none)"
  ));
  options.push_back(add_sizes(
      command,
      "-d,--depth",
      flags.depths,
      "Tokens that lie before each of these; making them is not counted"
  ));
  CLI::Option* show = command.add_flag(
      "--profile", flags.show_profile, "Say where the time went, by kernel"
  );
  CLI::Option* skip = command.add_flag(
      "--no-profile",
      flags.skip_profile,
      "Leave out the extra run from which memory speed and time outside "
      "kernels are known"
  );
  skip->excludes(show);
  options.push_back(show);
  options.push_back(skip);
  for (CLI::Option* option : options) option->group("Speed");
  return options;
}

Options add_perplexity_options(CLI::App& command, PerplexityFlags& flags) {
  Options options;
  options.push_back(
      command
          .add_option(
              "--window", flags.window, "Tokens that are read with one KV"
          )
          ->type_name("N")
          ->check(CLI::Range(2, 1 << 20).description(""))
          ->capture_default_str()
  );
  options.push_back(command
                        .add_option(
                            "--tokens",
                            flags.most_tokens,
                            "Take only so many of the text (0: all)"
                        )
                        ->type_name("N")
                        ->check(CLI::Range(0, 1 << 24).description(""))
                        ->capture_default_str());
  for (CLI::Option* option : options) option->group("Perplexity");
  return options;
}

Options add_restore_options(CLI::App& command, RestoreBenchOptions& flags) {
  std::error_code ignored;
  flags.directory = std::filesystem::temp_directory_path(ignored).string();
  Options options;
  options.push_back(
      command
          .add_option(
              "--dir",
              flags.directory,
              "Where to put the blocks; what is written there is removed again"
          )
          ->type_name("DIR")
          ->check(CLI::ExistingDirectory)
          ->capture_default_str()
  );
  options.push_back(command
                        .add_option(
                            "--blocks",
                            flags.blocks,
                            "Blocks of 256 tokens (5.9 MB) in the prompt"
                        )
                        ->check(CLI::Range(1, 4096).description(""))
                        ->capture_default_str());
  options.push_back(
      command
          .add_option_function<std::string>(
              "--start-bytes",
              [&flags](const std::string& text) {
                auto bytes = parse_size(text);
                if (!bytes) {
                  throw CLI::ValidationError(
                      "--start-bytes", bytes.error().message
                  );
                }
                flags.start_bytes = *bytes;
              },
              "Blocks to have on disk in all, for the time to start (as 10GB)"
          )
          ->type_name("SIZE")
  );
  options.push_back(
      command.add_option("--io-threads", flags.io_threads, "Threads that read")
          ->check(CLI::Range(1, 64).description(""))
          ->capture_default_str()
  );
  for (CLI::Option* option : options) option->group("Restore");
  return options;
}

/// A flag of one thing is an error with another, not ignored. (CLI11's own
/// exclusions would fill the help with their names.)
struct Rule {
  CLI::Option* mode;
  Options needed_by;      // flags that mean nothing without the mode
  Options excluded_with;  // flags that mean nothing with it
};

bool given(const CLI::Option* option) {
  return option->count() > 0;
}

void check(const std::vector<Rule>& rules) {
  for (const Rule& rule : rules) {
    for (const CLI::Option* option : rule.needed_by) {
      if (given(option) && !given(rule.mode)) {
        throw CLI::RequiresError(option->get_name(), rule.mode->get_name());
      }
    }
    for (const CLI::Option* option : rule.excluded_with) {
      if (given(option) && given(rule.mode)) {
        throw CLI::ExcludesError(option->get_name(), rule.mode->get_name());
      }
    }
  }
}

Options joined(std::initializer_list<Options> lists) {
  Options all;
  for (const Options& list : lists) {
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

int run(BenchFlags& flags) {
  if (flags.of_machine) return bench_info(flags.json);
  if (flags.of_restore) {
    flags.restore.rounds = flags.speed.repetitions;
    return bench_restore(flags.restore, flags.json);
  }
  if (!flags.perplexity.file.empty()) {
    return bench_perplexity(flags.perplexity, flags.speed, flags.json);
  }
  return bench_speed(flags.speed, flags.json);
}

}  // namespace

void add_bench_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command = app.add_subcommand(
      "bench", "Measure speed, exactness, and what the disk cache gives"
  );
  const Modes modes = add_modes(*command, *flags);
  const Options model = add_model_options(*command, flags->speed);
  const Options speed = add_speed_options(*command, flags->speed);
  CLI::Option* repetitions = command
                                 ->add_option(
                                     "-r,--repetitions,--rounds",
                                     flags->speed.repetitions,
                                     "How often speed or restoring is measured"
                                 )
                                 ->check(CLI::Range(1, 1000).description(""))
                                 ->type_name("N")
                                 ->capture_default_str();
  add_json_flag(*command, flags->json);
  const Options perplexity =
      add_perplexity_options(*command, flags->perplexity);
  const Options restore = add_restore_options(*command, flags->restore);
  const std::vector<Rule> rules{
      {modes.info,
       {},
       joined({speed, model, {repetitions, modes.perplexity, modes.restore}})},
      {modes.perplexity, perplexity, joined({speed, {repetitions}})},
      {modes.restore, restore, joined({speed, model, {modes.perplexity}})}};
  command->callback([flags, rules, &action] {
    check(rules);
    action = [flags] { return run(*flags); };
  });
}

}  // namespace afterglow
