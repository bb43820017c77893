#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <vector>

#include "cli/cache_commands.h"
#include "cli/cache_report.h"
#include "cli/human.h"
#include "cli/report_error.h"
#include "kv/entry_name.h"
#include "store/clock.h"

namespace afterglow {
namespace {

struct PinFlags {
  std::string directory;
  std::vector<std::string> ids;
  bool json = false;
};

void print_change(const StoredEntry& entry, bool pinned, bool changed) {
  std::printf(
      "%s %s (%s, %zu tokens, %s)\n",
      changed ? (pinned ? "Pinned" : "Unpinned")
              : (pinned ? "Already pinned:" : "Was not pinned:"),
      short_entry_name(entry.record).c_str(),
      to_string(entry.record.type),
      entry.record.length,
      human_bytes(entry.bytes).c_str()
  );
}

int set_pinned(const PinFlags& flags, bool pinned) {
  auto directory = CacheDirectory::open(flags.directory);
  if (!directory.ok()) return report_error(directory.error());
  const auto contents = directory->read();
  if (!contents.ok()) return report_error(contents.error());
  // All names are looked up before anything changes.
  std::vector<const StoredEntry*> entries;
  for (const std::string& id : flags.ids) {
    const auto entry = find_entry(*contents, id);
    if (!entry.ok()) return report_error(entry.error());
    entries.push_back(*entry);
  }
  CacheJson json;
  json["entries"] = CacheJson::array();
  for (const StoredEntry* entry : entries) {
    const auto changed = directory->set_pinned(*entry, pinned);
    if (!changed.ok()) return report_error(changed.error());
    if (flags.json) {
      json["entries"].push_back(
          {{"id", entry_name(entry->record)},
           {"pinned", pinned},
           {"changed", *changed}}
      );
    } else {
      print_change(*entry, pinned, *changed);
    }
  }
  if (flags.json) print_json(json);
  return 0;
}

void add_command(
    CLI::App& cache,
    Action& action,
    const std::string& name,
    const std::string& help,
    bool pinned
) {
  auto flags = std::make_shared<PinFlags>();
  CLI::App* command = cache.add_subcommand(name, help);
  command->add_option("id", flags->ids, "Ids of entries, or their beginnings")
      ->type_name("ID")
      ->required();
  add_cache_dir_flag(*command, flags->directory);
  add_json_flag(*command, flags->json);
  command->callback([flags, pinned, &action] {
    action = [flags, pinned] { return set_pinned(*flags, pinned); };
  });
}

}  // namespace

void add_cache_pin(CLI::App& cache, Action& action) {
  add_command(
      cache, action, "pin", "Keep prompts, whatever the budgets say", true
  );
}

void add_cache_unpin(CLI::App& cache, Action& action) {
  add_command(cache, action, "unpin", "Let prompts be evicted again", false);
}

}  // namespace afterglow
