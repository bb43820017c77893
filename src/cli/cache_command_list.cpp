#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/cache_commands.h"
#include "cli/cache_report.h"
#include "cli/human.h"
#include "cli/report_error.h"
#include "cli/text_table.h"
#include "kv/entry_name.h"
#include "store/clock.h"

namespace afterglow {
namespace {

struct ListFlags {
  std::string directory;
  bool json = false;
};

std::string expiry_of(const StoredEntry& entry, std::int64_t now_ns) {
  const std::int64_t expires = entry.expires_at_ns();
  if (expires == 0) return "";
  return expires <= now_ns ? "expired" : human_span(expires - now_ns);
}

void print_model(
    const CacheContents& contents, const StoredModel& model, std::int64_t now_ns
) {
  std::printf(
      "%s  (%s)\n",
      model_title(model).c_str(),
      short_folder(model.folder).c_str()
  );
  TextTable table(
      {{"ID"},
       {"TYPE"},
       {"TOKENS", true},
       {"SIZE", true},
       {"OWN", true},
       {"USED", true},
       {"HITS", true},
       {"PINNED"},
       {"TTL", true}}
  );
  bool any = false;
  for (const StoredEntry& entry : contents.entries) {
    if (entry.model != &model) continue;
    any = true;
    const EntryRecord& record = entry.record;
    table.add(
        {short_entry_name(record),
         std::string(to_string(record.type)) + (entry.listed ? "" : "*"),
         std::to_string(record.length),
         human_bytes(entry.bytes),
         human_bytes(entry.own_bytes),
         human_span(now_ns - record.last_use_ns),
         std::to_string(record.hits),
         record.pinned ? "pinned" : "",
         expiry_of(entry, now_ns)}
    );
  }
  if (any) {
    std::printf("%s\n", table.format("  ").c_str());
  } else {
    std::printf("  no entries\n\n");
  }
}

void print_totals(const CacheContents& contents) {
  std::printf(
      "%s, %s, %s\n",
      human_count(contents.entries.size(), "entry").c_str(),
      human_count(contents.blocks(), "block").c_str(),
      human_bytes(contents.bytes()).c_str()
  );
  std::size_t damaged = 0;
  std::size_t unlisted = 0;
  for (const auto& model : contents.models) {
    for (const auto& [id, stored] : model->blocks) damaged += !stored.block;
  }
  for (const StoredEntry& entry : contents.entries) unlisted += !entry.listed;
  if (unlisted > 0) {
    std::printf("* not in the index (yet); dated by its files\n");
  }
  if (!contents.orphans.empty()) {
    std::printf(
        "%s of these wait for one before them that is missing\n",
        human_count(contents.orphans.size(), "block").c_str()
    );
  }
  if (damaged > 0) {
    std::printf(
        "%s of these cannot be used; `afterglow cache verify` says why\n",
        human_count(damaged, "block").c_str()
    );
  }
  if (contents.manifest_error) {
    std::printf(
        "the index cannot be used, so types, hits and pins are not known: "
        "%s\n",
        contents.manifest_error->message.c_str()
    );
  }
}

void print_list(
    const CacheDirectory& directory, const CacheContents& contents
) {
  if (contents.blocks() == 0) {
    std::printf("The prompt cache in %s is empty.\n", directory.path().c_str());
    return;
  }
  const std::int64_t now = unix_now_ns();
  for (const auto& model : contents.models) {
    if (!model->blocks.empty()) print_model(contents, *model, now);
  }
  print_totals(contents);
}

CacheJson list_json(
    const CacheDirectory& directory, const CacheContents& contents
) {
  CacheJson json;
  json["directory"] = directory.path();
  json["blocks"] = contents.blocks();
  json["bytes"] = contents.bytes();
  json["orphan_blocks"] = contents.orphans.size();
  json["manifest_error"] = contents.manifest_error
                               ? CacheJson(contents.manifest_error->message)
                               : CacheJson();
  json["models"] = CacheJson::array();
  for (const auto& model : contents.models) {
    json["models"].push_back(model_json(*model));
  }
  json["entries"] = CacheJson::array();
  const std::int64_t now = unix_now_ns();
  for (const StoredEntry& entry : contents.entries) {
    json["entries"].push_back(entry_json(entry, now));
  }
  return json;
}

int list(const ListFlags& flags) {
  const auto directory = CacheDirectory::open(flags.directory);
  if (!directory.ok()) return report_error(directory.error());
  const auto contents = directory->read();
  if (!contents.ok()) return report_error(contents.error());
  if (flags.json) {
    print_json(list_json(*directory, *contents));
  } else {
    print_list(*directory, *contents);
  }
  return 0;
}

}  // namespace

void add_cache_list(CLI::App& cache, Action& action) {
  auto flags = std::make_shared<ListFlags>();
  CLI::App* command =
      cache.add_subcommand("list", "The prompts that the cache keeps");
  add_cache_dir_flag(*command, flags->directory);
  add_json_flag(*command, flags->json);
  command->footer(
      "SIZE is what a prompt's blocks take, OWN is what no other prompt "
      "shares with it,\nUSED how long ago it was last used. The latest used "
      "come first."
  );
  command->callback([flags, &action] {
    action = [flags] { return list(*flags); };
  });
}

}  // namespace afterglow
