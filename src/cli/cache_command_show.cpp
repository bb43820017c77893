#include <CLI/CLI.hpp>
#include <algorithm>
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

constexpr std::size_t kTokensShown = 8;  // at either end
constexpr std::size_t kBlockDigits = 16;

struct ShowFlags {
  std::string directory;
  std::string id;
  bool json = false;
};

/// Another entry that begins as this one does.
struct Sharer {
  const StoredEntry* entry = nullptr;
  std::size_t tokens = 0;
};

std::vector<Token> tokens_of(const StoredEntry& entry) {
  std::vector<Token> tokens;
  for (const BlockId& id : entry.record.path) {
    const auto& block = entry.model->find(id)->block->tokens;
    tokens.insert(tokens.end(), block.begin(), block.end());
  }
  tokens.resize(std::min(tokens.size(), entry.record.length));
  return tokens;
}

/// Those that share the most come first.
std::vector<Sharer> sharers_of(
    const CacheContents& contents, const StoredEntry& entry
) {
  std::vector<Sharer> sharers;
  const std::vector<BlockId>& path = entry.record.path;
  for (const StoredEntry& other : contents.entries) {
    const auto& theirs = other.record.path;
    const auto end =
        std::mismatch(path.begin(), path.end(), theirs.begin(), theirs.end());
    const auto blocks = static_cast<std::size_t>(end.first - path.begin());
    if (&other != &entry && blocks > 0) {
      sharers.push_back(
          {&other,
           std::min(
               {blocks * kPageTokens, entry.record.length, other.record.length}
           )}
      );
    }
  }
  std::stable_sort(
      sharers.begin(),
      sharers.end(),
      [](const Sharer& a, const Sharer& b) { return a.tokens > b.tokens; }
  );
  return sharers;
}

/// How many entries run through the block, this one included.
std::size_t users_of(const CacheContents& contents, const BlockId& id) {
  return static_cast<std::size_t>(std::count_if(
      contents.entries.begin(),
      contents.entries.end(),
      [&](const StoredEntry& entry) {
        const auto& path = entry.record.path;
        return std::find(path.begin(), path.end(), id) != path.end();
      }
  ));
}

std::string join(const std::vector<Token>& tokens, std::size_t from) {
  std::string text;
  const std::size_t end = std::min(tokens.size(), from + kTokensShown);
  for (std::size_t i = from; i < end; ++i) {
    text += (i == from ? "" : " ") + std::to_string(tokens[i]);
  }
  return text;
}

void print_entry(const CacheContents& contents, const StoredEntry& entry) {
  const EntryRecord& record = entry.record;
  const std::int64_t now = unix_now_ns();
  const std::vector<Token> tokens = tokens_of(entry);
  auto line = [](const char* name, const std::string& value) {
    std::printf("%-12s %s\n", name, value.c_str());
  };
  line("id", entry_name(record));
  line("model", model_title(*entry.model));
  line("folder", entry.model->folder);
  line("type", to_string(record.type));
  line("tokens", std::to_string(record.length));
  line(
      "size",
      human_bytes(entry.bytes) + " in " +
          human_count(record.path.size(), "block") + ", " +
          human_bytes(entry.own_bytes) + " of it shared with no other"
  );
  line(
      "last used",
      human_time(record.last_use_ns) + ", " +
          human_span(now - record.last_use_ns) + " ago"
  );
  line("hits", std::to_string(record.hits));
  line("pinned", record.pinned ? "yes" : "no");
  if (record.ttl_ns != 0) {
    const std::int64_t expires = entry.expires_at_ns();
    line(
        "expires",
        expires == 0 ? "not while it is pinned"
                     : human_time(expires) + " unless used before"
    );
  }
  if (!entry.listed) line("index", "not in it (yet); dated by its files");
  const bool all = tokens.size() <= 2 * kTokensShown;
  line("first tokens", join(tokens, 0) + (all ? "" : " ..."));
  line(
      "last tokens",
      (all ? "" : "... ") +
          join(tokens, tokens.size() - std::min(tokens.size(), kTokensShown))
  );

  std::printf("\n");
  TextTable blocks(
      {{"BLOCK"},
       {"START", true},
       {"TOKENS", true},
       {"SIZE", true},
       {"DATE"},
       {"USERS", true}}
  );
  for (const BlockId& id : record.path) {
    const StoredBlock& stored = *entry.model->find(id);
    blocks.add(
        {id.hex().substr(0, kBlockDigits),
         std::to_string(stored.block->start),
         std::to_string(stored.block->tokens.size()),
         human_bytes(stored.bytes),
         human_time(stored.mtime_ns),
         std::to_string(users_of(contents, id))}
    );
  }
  std::printf("%s", blocks.format().c_str());

  const std::vector<Sharer> sharers = sharers_of(contents, entry);
  if (sharers.empty()) return;
  std::printf("\n");
  TextTable shared({{"SHARES WITH"}, {"TYPE"}, {"TOKENS", true}});
  for (const Sharer& sharer : sharers) {
    shared.add(
        {short_entry_name(sharer.entry->record),
         to_string(sharer.entry->record.type),
         std::to_string(sharer.tokens)}
    );
  }
  std::printf("%s", shared.format().c_str());
}

CacheJson show_json(const CacheContents& contents, const StoredEntry& entry) {
  CacheJson json = entry_json(entry, unix_now_ns());
  const std::vector<Token> tokens = tokens_of(entry);
  const auto shown =
      static_cast<std::ptrdiff_t>(std::min(tokens.size(), kTokensShown));
  json["root"] = entry.record.root.hex();
  json["first_tokens"] =
      std::vector<Token>(tokens.begin(), tokens.begin() + shown);
  json["last_tokens"] = std::vector<Token>(tokens.end() - shown, tokens.end());
  json["path"] = CacheJson::array();
  for (const BlockId& id : entry.record.path) {
    const StoredBlock& stored = *entry.model->find(id);
    json["path"].push_back(
        {{"id", id.hex()},
         {"start", stored.block->start},
         {"tokens", stored.block->tokens.size()},
         {"bytes", stored.bytes},
         {"date", static_cast<double>(stored.mtime_ns) / 1e9},
         {"users", users_of(contents, id)}}
    );
  }
  json["shares"] = CacheJson::array();
  for (const Sharer& sharer : sharers_of(contents, entry)) {
    json["shares"].push_back(
        {{"id", entry_name(sharer.entry->record)},
         {"type", to_string(sharer.entry->record.type)},
         {"tokens", sharer.tokens}}
    );
  }
  return json;
}

int show(const ShowFlags& flags) {
  const auto directory = CacheDirectory::open(flags.directory);
  if (!directory.ok()) return report_error(directory.error());
  const auto contents = directory->read();
  if (!contents.ok()) return report_error(contents.error());
  const auto entry = find_entry(*contents, flags.id);
  if (!entry.ok()) return report_error(entry.error());
  if (flags.json) {
    print_json(show_json(*contents, **entry));
  } else {
    print_entry(*contents, **entry);
  }
  return 0;
}

}  // namespace

void add_cache_show(CLI::App& cache, Action& action) {
  auto flags = std::make_shared<ShowFlags>();
  CLI::App* command = cache.add_subcommand(
      "show", "One prompt: its blocks, and who shares them"
  );
  command->add_option("id", flags->id, "Its id, or the beginning of it")
      ->type_name("ID")
      ->required();
  add_cache_dir_flag(*command, flags->directory);
  add_json_flag(*command, flags->json);
  command->callback([flags, &action] {
    action = [flags] { return show(*flags); };
  });
}

}  // namespace afterglow
