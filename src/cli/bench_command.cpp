#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/cache_commands.h"
#include "cli/commands.h"
#include "cli/human.h"
#include "cli/parse_size.h"
#include "cli/restore_speed.h"
#include "cli/text_table.h"

namespace afterglow {
namespace {

using json = nlohmann::ordered_json;

struct BenchFlags {
  bool of_restore = false;  // required: the only measurement there is
  RestoreBenchOptions restore;
  bool json = false;
};

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle]
                                : (values[middle - 1] + values[middle]) / 2;
}

std::string number(double value, const char* unit) {
  char text[48];
  std::snprintf(text, sizeof text, "%.2f %s", value, unit);
  return text;
}

void print_table(const RestoreBenchReport& report) {
  TextTable table({{"test"}, {"median", true}, {"least", true}, {"most", true}}
  );
  auto add = [&](const char* test,
                 const std::vector<double>& values,
                 double factor,
                 const char* unit) {
    if (values.empty()) return;
    table.add(
        {test,
         number(median(values) * factor, unit),
         number(*std::ranges::min_element(values) * factor, unit),
         number(*std::ranges::max_element(values) * factor, unit)}
    );
  };
  add("write, synced", {report.write}, 1, "GB/s");
  add("restore, page cache warm", report.warm, 1, "GB/s");
  add("restore, page cache cold", report.cold, 1, "GB/s");
  add("plain reads, page cache cold", report.disk, 1, "GB/s");
  add("ready after start", report.open, 1e3, "ms");
  add("all files known after start", report.index, 1e3, "ms");
  std::printf(
      "A prompt of %s of KV; %s on disk.\n\n%s",
      human_bytes(report.prompt_bytes).c_str(),
      (human_count(report.stored_blocks, "block") + ", " +
       human_bytes(report.stored_bytes))
          .c_str(),
      table.format().c_str()
  );
  if (!report.cold.empty()) {
    std::printf(
        "\nCold restore reaches %.0f %% of the disk's own speed.\n",
        100 * median(report.cold) / median(report.disk)
    );
  }
  if (!report.cold_note.empty()) {
    std::printf("\n%s\n", report.cold_note.c_str());
  }
}

void print_json(const RestoreBenchReport& report) {
  json list = json::array();
  auto add = [&](const char* test,
                 const std::vector<double>& values,
                 const char* unit) {
    if (values.empty()) return;
    list.push_back({{"test", test}, {unit, median(values)}, {"rounds", values}}
    );
  };
  add("write", {report.write}, "gigabytes_per_second");
  add("restore_warm", report.warm, "gigabytes_per_second");
  add("restore_cold", report.cold, "gigabytes_per_second");
  add("disk_cold", report.disk, "gigabytes_per_second");
  add("start_ready", report.open, "seconds");
  add("start_indexed", report.index, "seconds");
  std::printf("%s\n", list.dump(2).c_str());
}

int bench(const BenchFlags& flags) {
  auto report = run_restore_bench(flags.restore);
  if (!report) {
    std::fprintf(stderr, "afterglow: %s\n", report.error().message.c_str());
    return 1;
  }
  flags.json ? print_json(*report) : print_table(*report);
  return 0;
}

}  // namespace

void add_bench_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<BenchFlags>();
  std::error_code ignored;
  flags->restore.directory =
      std::filesystem::temp_directory_path(ignored).string();
  CLI::App* command =
      app.add_subcommand("bench", "Measure what the disk cache gives");
  command
      ->add_flag(
          "--restore",
          flags->of_restore,
          "How fast a prompt comes back from disk, and how soon a server is "
          "ready (no model is loaded: the KV is random)"
      )
      ->required();
  command
      ->add_option(
          "--dir",
          flags->restore.directory,
          "Where to put the blocks; what is written there is removed again"
      )
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  command
      ->add_option(
          "--blocks",
          flags->restore.blocks,
          "Blocks of 256 tokens (5.9 MB) in the prompt"
      )
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command
      ->add_option_function<std::string>(
          "--start-bytes",
          [flags](const std::string& text) {
            auto bytes = parse_size(text);
            if (!bytes) {
              throw CLI::ValidationError(
                  "--start-bytes", bytes.error().message
              );
            }
            flags->restore.start_bytes = *bytes;
          },
          "Blocks to have on disk in all, for the time to start (as 10GB)"
      )
      ->type_name("SIZE");
  command->add_option("-r,--rounds", flags->restore.rounds, "Repetitions")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      ->add_option(
          "--io-threads", flags->restore.io_threads, "Threads that read"
      )
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  add_json_flag(*command, flags->json);
  command->callback([flags, &action] {
    action = [flags] { return bench(*flags); };
  });
}

}  // namespace afterglow
