#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include "cli/cache_commands.h"
#include "cli/cache_report.h"
#include "cli/engine_flags.h"
#include "cli/report_error.h"
#include "kv/entry_name.h"

namespace afterglow {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto kFlushTime = 5min;

struct ImportFlags {
  EngineOptions engine;
  std::string file;
  std::optional<std::string> prompt;
  std::string prompt_file;
  std::string messages_file;
  std::string tokens_file;
  bool check_all = false;
  bool json = false;
};

Result<std::string> read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in.good() && !in.eof()) {
    return Error{
        Code::kNotFound, "[cache.import] " + path + ": cannot be read"};
  }
  return text;
}

Result<std::vector<Token>> read_tokens(const std::string& path) {
  auto text = read_text(path);
  if (!text.ok()) return text.error();
  const auto json = CacheJson::parse(*text, nullptr, false);
  std::vector<Token> tokens;
  if (json.is_array()) {
    for (const auto& item : json) {
      if (!item.is_number_integer()) break;
      tokens.push_back(item.get<Token>());
    }
  }
  if (tokens.empty() || tokens.size() != json.size()) {
    return Error{
        Code::kInvalidArgument,
        "[cache.import] " + path + ": not a JSON list of token ids"};
  }
  return tokens;
}

/// The prompt as mlx_lm.cache_prompt makes it of a text.
Result<PreparedPrompt> prepare_text(
    const Engine& engine, const std::string& prompt
) {
  const CacheJson messages =
      CacheJson::array({CacheJson{{"role", "user"}, {"content", prompt}}});
  std::string text;
  try {
    text = messages.dump();
  } catch (const CacheJson::type_error&) {
    return Error{
        Code::kInvalidArgument, "[cache.import] the prompt is not valid UTF-8"};
  }
  return engine.prepare_open_chat(text, {});
}

/// Nothing when no prompt is given: the file has to tell its tokens.
Result<std::optional<std::vector<Token>>> prompt_tokens(
    const Engine& engine, const ImportFlags& flags
) {
  using Tokens = std::optional<std::vector<Token>>;
  if (!flags.tokens_file.empty()) {
    auto tokens = read_tokens(flags.tokens_file);
    if (!tokens.ok()) return tokens.error();
    return Tokens(*std::move(tokens));
  }
  const std::string& path =
      flags.prompt_file.empty() ? flags.messages_file : flags.prompt_file;
  if (path.empty() && !flags.prompt) return Tokens();
  std::string text;
  if (!path.empty()) {
    auto content = read_text(path);
    if (!content.ok()) return content.error();
    text = *std::move(content);
  } else if (*flags.prompt == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    text = *flags.prompt;
  }
  auto prepared = flags.messages_file.empty()
                      ? prepare_text(engine, text)
                      : engine.prepare_open_chat(text, {});
  if (!prepared.ok()) return prepared.error();
  return Tokens(std::move(prepared->tokens));
}

void print_imported(const ImportFlags& flags, const ImportedCache& imported) {
  const KvDifference& difference = imported.difference;
  if (flags.json) {
    print_json(
        {{"id", entry_name(imported.entry)},
         {"tokens", imported.entry.length},
         {"pinned", imported.entry.pinned},
         {"own", imported.is_own},
         {"checked_tokens", difference.tokens},
         {"mean_difference", difference.mean},
         {"worst_difference", difference.worst}}
    );
    return;
  }
  std::printf(
      "Imported %s: %zu tokens as %s, pinned\n",
      flags.file.c_str(),
      imported.entry.length,
      short_entry_name(imported.entry).c_str()
  );
  if (imported.is_own) {
    std::printf("Checked: written by this model here, with right sums\n");
  }
  if (difference.tokens > 0) {
    std::printf(
        "Checked: computed %zu tokens again; KV differs by %.2g of its size, "
        "at most by %.2g\n",
        difference.tokens,
        difference.mean,
        difference.worst
    );
  }
}

int import_cache(const ImportFlags& flags) {
  auto loaded = load_engine(flags.engine);
  if (!loaded.ok()) return report_error(loaded.error());
  Engine& engine = **loaded;
  auto tokens = prompt_tokens(engine, flags);
  if (!tokens.ok()) return report_error(tokens.error());
  const auto imported =
      engine.import_cache({flags.file, *std::move(tokens), flags.check_all});
  if (!imported.ok()) return report_error(imported.error());
  const auto now = steady_clock::now();
  if (!engine.shutdown(now, now + kFlushTime)) {
    return report_error(
        {Code::kIo,
         "[cache.import] the cache did not reach the disk; the log above says "
         "why"}
    );
  }
  print_imported(flags, *imported);
  return 0;
}

void add_prompt_flags(CLI::App& command, ImportFlags& flags) {
  auto* prompts = command.add_option_group(
      "prompt", "What the file holds; for a file of ours nothing of this"
  );
  prompts->require_option(0, 1);
  prompts
      ->add_option(
          "-p,--prompt",
          flags.prompt,
          "The --prompt of mlx_lm.cache_prompt ('-': standard input)"
      )
      ->type_name("TEXT");
  prompts->add_option("--prompt-file", flags.prompt_file, "A file with it")
      ->type_name("FILE");
  prompts
      ->add_option(
          "--messages",
          flags.messages_file,
          "A file with a JSON list of messages, the last one open at its end"
      )
      ->type_name("FILE");
  prompts
      ->add_option(
          "--tokens", flags.tokens_file, "A file with a JSON list of token ids"
      )
      ->type_name("FILE");
}

}  // namespace

void add_cache_import(CLI::App& cache, Action& action) {
  auto flags = std::make_shared<ImportFlags>();
  CLI::App* command = cache.add_subcommand(
      "import", "Take a prompt-cache file of mlx_lm, or an exported one, in"
  );
  command->add_option("file", flags->file, "The file")
      ->type_name("FILE")
      ->required();
  add_prompt_flags(*command, *flags);
  command->add_flag(
      "--check-all",
      flags->check_all,
      "Compute all tokens again to compare, not a sample of 512"
  );
  add_model_flags(*command, flags->engine);
  add_cache_dir_flag(*command, flags->engine.prompt_cache_dir);
  add_json_flag(*command, flags->json);
  command->callback([flags, &action] {
    check_together(flags->engine);
    action = [flags] { return import_cache(*flags); };
  });
}

}  // namespace afterglow
