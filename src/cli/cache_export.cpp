#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/cache_commands.h"
#include "cli/cache_report.h"
#include "cli/human.h"
#include "cli/report_error.h"
#include "engine/kv_history.h"
#include "kv/entry_name.h"
#include "store/mlx_cache_file_blocks.h"

namespace afterglow {
namespace {

struct ExportFlags {
  std::string directory;
  std::string entry;
  std::string output;
  std::string mlx_model;
  bool json = false;
};

/// What the file says of itself. KV that was not computed here (imported) or
/// that lies in a namespace is said to be foreign: whoever imports the file
/// compares it with a computation first.
MlxCacheStamp stamp_of(const BlockFileSource& source) {
  const ModelKey& key = source.key();
  MlxCacheStamp stamp{key.fingerprint, key.spec, source.tokens()};
  if (source.root() != root_id(key.fingerprint, key.spec, "")) {
    stamp.spec = foreign_spec(key.spec);
  }
  return stamp;
}

int export_cache(const ExportFlags& flags) {
  auto directory = CacheDirectory::open(flags.directory);
  if (!directory.ok()) return report_error(directory.error());
  const auto contents = directory->read();
  if (!contents.ok()) return report_error(contents.error());
  const auto entry = find_entry(*contents, flags.entry);
  if (!entry.ok()) return report_error(entry.error());
  const EntryRecord& record = (*entry)->record;
  auto source = BlockFileSource::open(
      directory->files(), (*entry)->model->folder, record.path, record.length
  );
  if (!source.ok()) return report_error(source.error());
  const std::string model =
      flags.mlx_model.empty() ? (*entry)->model->name : flags.mlx_model;
  std::uint64_t bytes = 0;
  const Status written =
      replace_user_file(flags.output, [&](File& file) -> Status {
        const Status done = write_mlx_cache_file(
            file,
            source->key().layout,
            stamp_of(*source),
            {{"model", model}, {"tokenizer_config", "{}"}},
            *source
        );
        if (!done.ok()) return done;
        const auto info = file.info();
        if (!info.ok()) return info.error();
        bytes = info->bytes;
        return {};
      });
  if (!written.ok()) return report_error(written.error());
  if (flags.json) {
    print_json(
        {{"id", entry_name(record)},
         {"output", flags.output},
         {"tokens", record.length},
         {"bytes", bytes},
         {"model", model}}
    );
  } else {
    std::printf(
        "Wrote %s: %zu tokens of %s (%s)\n",
        flags.output.c_str(),
        record.length,
        short_entry_name(record).c_str(),
        human_bytes(bytes).c_str()
    );
  }
  return 0;
}

}  // namespace

void add_cache_export(CLI::App& cache, Action& action) {
  auto flags = std::make_shared<ExportFlags>();
  CLI::App* command = cache.add_subcommand(
      "export", "Write an entry as a prompt-cache file that mlx_lm opens"
  );
  command
      ->add_option("--entry", flags->entry, "The entry's id, or its beginning")
      ->type_name("ID")
      ->required();
  command->add_option("-o,--output", flags->output, "The file to write")
      ->type_name("FILE")
      ->required();
  command
      ->add_option(
          "--mlx-model",
          flags->mlx_model,
          "The model's path or name for mlx_lm (default: the name it has here)"
      )
      ->type_name("NAME");
  add_cache_dir_flag(*command, flags->directory);
  add_json_flag(*command, flags->json);
  command->callback([flags, &action] {
    action = [flags] { return export_cache(*flags); };
  });
}

}  // namespace afterglow
