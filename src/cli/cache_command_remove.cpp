#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>

#include "cli/cache_commands.h"
#include "cli/cache_report.h"
#include "cli/human.h"
#include "cli/parse_duration.h"
#include "cli/parse_size.h"
#include "cli/report_error.h"
#include "kv/entry_name.h"

namespace afterglow {
namespace {

struct RemoveFlags {
  std::string directory;
  std::string model;
  std::optional<std::uint64_t> max_bytes;
  std::optional<std::int64_t> unused_for_ns;
  bool dry_run = false;
  bool yes = false;
  bool json = false;
};

CacheJson removal_json(const Removal& removal, bool dry_run) {
  CacheJson json;
  json["dry_run"] = dry_run;
  json["blocks"] = removal.blocks;
  json["bytes"] = removal.bytes;
  json["left_bytes"] = removal.left_bytes;
  json["entries"] = CacheJson::array();
  for (const RemovedEntry& entry : removal.entries) {
    json["entries"].push_back(
        {{"id", entry_name(entry.record)},
         {"model", entry.model},
         {"type", to_string(entry.record.type)},
         {"tokens", entry.record.length},
         {"tokens_left", entry.tokens_left},
         {"bytes", entry.bytes}}
    );
  }
  json["failures"] = CacheJson::array();
  for (const Error& failure : removal.failures) {
    json["failures"].push_back(failure.message);
  }
  return json;
}

void print_removal(const Removal& removal, bool dry_run) {
  for (const RemovedEntry& entry : removal.entries) {
    std::string left;
    if (entry.tokens_left > 0) {
      left =
          ", its first " + std::to_string(entry.tokens_left) + " tokens stay";
    }
    std::printf(
        "  %s  %s, %s%s\n",
        short_entry_name(entry.record).c_str(),
        to_string(entry.record.type),
        human_bytes(entry.bytes).c_str(),
        left.c_str()
    );
  }
  for (const Error& failure : removal.failures) {
    std::printf("  not removed: %s\n", failure.message.c_str());
  }
  std::printf(
      "%s%s, %s, %s; %s left\n",
      dry_run ? "Would remove " : "Removed ",
      human_count(removal.entries.size(), "entry").c_str(),
      human_count(removal.blocks, "block").c_str(),
      human_bytes(removal.bytes).c_str(),
      human_bytes(removal.left_bytes).c_str()
  );
}

int report_removal(const Removal& removal, const RemoveFlags& flags) {
  if (flags.json) {
    print_json(removal_json(removal, flags.dry_run));
  } else {
    print_removal(removal, flags.dry_run);
  }
  const bool fits = !flags.max_bytes || removal.left_bytes <= *flags.max_bytes;
  if (!fits) {
    std::fprintf(
        stderr,
        "afterglow: %s stay, more than %s: what is pinned is never pruned "
        "(see: afterglow cache unpin), and servers may be writing\n",
        human_bytes(removal.left_bytes).c_str(),
        human_bytes(*flags.max_bytes).c_str()
    );
  }
  return fits && removal.failures.empty() ? 0 : 1;
}

/// The folders that --model means; empty without it.
Result<std::vector<std::string>> folders_of(
    const CacheDirectory& directory, const std::string& model
) {
  if (model.empty()) return std::vector<std::string>();
  const auto contents = directory.read();
  if (!contents.ok()) return contents.error();
  return directory.find_models(*contents, model);
}

int prune(const RemoveFlags& flags) {
  auto directory = CacheDirectory::open(flags.directory);
  if (!directory.ok()) return report_error(directory.error());
  auto folders = folders_of(*directory, flags.model);
  if (!folders.ok()) return report_error(folders.error());
  PruneRule rule;
  rule.folders = *std::move(folders);
  rule.unused_for_ns = flags.unused_for_ns;
  rule.max_bytes = flags.max_bytes;
  if (!rule.unused_for_ns && !rule.max_bytes) rule.unused_for_ns = 0;
  const auto removal = directory->prune(rule, flags.dry_run);
  if (!removal.ok()) return report_error(removal.error());
  return report_removal(*removal, flags);
}

/// Asks on the terminal; true for yes.
bool confirm(const CacheContents& contents, const RemoveFlags& flags) {
  std::uint64_t pinned = 0;
  for (const StoredEntry& entry : contents.entries) {
    pinned += entry.record.pinned;
  }
  std::printf(
      "%s holds %s, %s%s.\nRemove %s? [y/N] ",
      flags.directory.c_str(),
      human_count(contents.entries.size(), "entry").c_str(),
      human_bytes(contents.bytes()).c_str(),
      pinned > 0 ? (", " + std::to_string(pinned) + " pinned").c_str() : "",
      flags.model.empty() ? "all of it" : ("all of " + flags.model).c_str()
  );
  std::fflush(stdout);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

int clear(const RemoveFlags& flags) {
  auto directory = CacheDirectory::open(flags.directory);
  if (!directory.ok()) return report_error(directory.error());
  const auto contents = directory->read();
  if (!contents.ok()) return report_error(contents.error());
  std::vector<std::string> folders;
  if (!flags.model.empty()) {
    auto found = directory->find_models(*contents, flags.model);
    if (!found.ok()) return report_error(found.error());
    folders = *std::move(found);
  }
  if (!flags.yes && !confirm(*contents, flags)) {
    std::printf("Nothing was removed.\n");
    return 1;
  }
  const auto removal = directory->clear(folders);
  if (!removal.ok()) return report_error(removal.error());
  return report_removal(*removal, flags);
}

CLI::Option* add_model_flag(CLI::App& command, std::string& model) {
  return command
      .add_option(
          "--model",
          model,
          "Only this model's: its name, or its folder's first digits"
      )
      ->type_name("NAME");
}

}  // namespace

void add_cache_prune(CLI::App& cache, Action& action) {
  auto flags = std::make_shared<RemoveFlags>();
  CLI::App* command = cache.add_subcommand(
      "prune", "Remove what is least worth keeping, never what is pinned"
  );
  add_cache_dir_flag(*command, flags->directory);
  command
      ->add_option_function<std::string>(
          "--to",
          [flags](const std::string& text) {
            const auto size = parse_size(text);
            if (!size.ok()) {
              throw CLI::ValidationError("--to", size.error().message);
            }
            flags->max_bytes = *size;
          },
          "Until the blocks take no more than this, as a server evicts"
      )
      ->type_name("SIZE");
  command
      ->add_option_function<std::string>(
          "--unused-for",
          [flags](const std::string& text) {
            const auto span = parse_duration(text);
            if (!span.ok()) {
              throw CLI::ValidationError("--unused-for", span.error().message);
            }
            flags->unused_for_ns = *span;
          },
          "Entries that were not used for this long, such as 12h or 7d"
      )
      ->type_name("TIME");
  add_model_flag(*command, flags->model);
  command->add_flag(
      "--dry-run", flags->dry_run, "Only say what would be removed"
  );
  add_json_flag(*command, flags->json);
  command->footer(
      "At least one of --to, --unused-for and --model is needed; --model "
      "alone removes all\nof that model but what is pinned. Entries whose "
      "time to live has passed go in any case."
  );
  command->callback([flags, &action] {
    if (!flags->max_bytes && !flags->unused_for_ns && flags->model.empty()) {
      throw CLI::RequiredError("One of --to, --unused-for and --model");
    }
    action = [flags] { return prune(*flags); };
  });
}

void add_cache_clear(CLI::App& cache, Action& action) {
  auto flags = std::make_shared<RemoveFlags>();
  CLI::App* command =
      cache.add_subcommand("clear", "Remove everything, pinned or not");
  add_cache_dir_flag(*command, flags->directory);
  add_model_flag(*command, flags->model);
  command->add_flag("-y,--yes", flags->yes, "Do not ask");
  add_json_flag(*command, flags->json);
  command->callback([flags, &action] {
    // There is nobody to ask, or the question would spoil the JSON.
    if (!flags->yes && (::isatty(STDIN_FILENO) != 1 || flags->json)) {
      throw CLI::RequiredError("--yes (clear removes without a way back)");
    }
    action = [flags] { return clear(*flags); };
  });
}

}  // namespace afterglow
