#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "cli/cache_commands.h"
#include "cli/cache_report.h"
#include "cli/human.h"
#include "cli/report_error.h"
#include "kv/entry_name.h"
#include "store/cache_directory_verify.h"

namespace afterglow {
namespace {

struct VerifyFlags {
  std::string directory;
  bool repair = false;
  bool json = false;
};

/// One line on standard error, if that is a terminal.
class ProgressLine {
 public:
  ProgressLine() : shown_(::isatty(STDERR_FILENO) == 1) {}

  void show(std::uint64_t done, std::uint64_t total) {
    const int percent =
        total == 0 ? 100
                   : static_cast<int>(100 * std::min(done, total) / total);
    if (!shown_ || percent == percent_) return;
    percent_ = percent;
    std::fprintf(
        stderr, "\rreading %s: %3d %%", human_bytes(total).c_str(), percent
    );
  }
  void clear() {
    if (percent_ >= 0) std::fprintf(stderr, "\r\033[K");
  }

 private:
  bool shown_;
  int percent_ = -1;
};

void print_blocks(const char* what, const std::vector<BadBlock>& blocks) {
  for (const BadBlock& bad : blocks) {
    std::printf(
        "%s: %s\n  %s, %s\n  v1/%s/blocks/%s.safetensors\n",
        what,
        bad.id.hex().c_str(),
        bad.error.message.c_str(),
        human_bytes(bad.bytes).c_str(),
        bad.folder.c_str(),
        bad.id.hex().c_str()
    );
  }
}

void print_waiting(const std::vector<BadBlock>& orphans) {
  if (orphans.empty()) return;
  std::uint64_t bytes = 0;
  for (const BadBlock& orphan : orphans) bytes += orphan.bytes;
  std::printf(
      "waiting: %s, %s, until one before them is computed again\n",
      human_count(orphans.size(), "block").c_str(),
      human_bytes(bytes).c_str()
  );
}

void print_lost(const VerifyReport& report) {
  for (const LostTokens& lost : report.lost) {
    std::printf(
        "%s %s: %zu of %zu tokens are left, block %s is %s\n",
        lost.is_missing ? "shorter:" : "lost:",
        short_entry_name(lost.record).c_str(),
        lost.kept,
        lost.record.length,
        lost.block.hex().substr(0, 16).c_str(),
        lost.is_missing ? "gone" : "damaged"
    );
  }
}

void print_rest(const VerifyReport& report) {
  if (report.manifest_error) {
    std::printf(
        "index: %s; the types, hits and pins of prompts are lost, no block\n",
        report.manifest_error->message.c_str()
    );
  }
  if (report.dead_temporaries > 0) {
    std::printf(
        "%s left by a program that died (removed at a server's start)\n",
        human_count(report.dead_temporaries, "unfinished file").c_str()
    );
  }
  if (report.lock_bytes && *report.lock_bytes != report.counted_bytes) {
    std::printf(
        "the lock file counts %s, the blocks take %s (counted anew at a "
        "server's start\nand every ten minutes)\n",
        human_bytes(*report.lock_bytes).c_str(),
        human_bytes(report.counted_bytes).c_str()
    );
  }
}

void print_verdict(const VerifyReport& report, bool repair) {
  if (repair) {
    std::printf(
        "removed: %s, %s\n",
        human_count(report.removed_blocks, "damaged block").c_str(),
        human_count(report.removed_temporaries, "unfinished file").c_str()
    );
  }
  for (const Error& failure : report.failures) {
    std::printf("not repaired: %s\n", failure.message.c_str());
  }
  const double speed = report.seconds > 0
                           ? static_cast<double>(report.bytes) / report.seconds
                           : 0;
  std::printf(
      "%s whole, %s read in %.2f s (%s/s)\n",
      human_count(report.blocks, "block").c_str(),
      human_bytes(report.bytes).c_str(),
      report.seconds,
      human_bytes(static_cast<std::uint64_t>(speed)).c_str()
  );
  if (!report.is_damaged()) {
    std::printf("No damage.\n");
  } else if (!report.corrupt.empty()) {
    std::printf(
        "%s damaged; a server computes such prompts again and removes the "
        "file%s\n",
        human_count(report.corrupt.size(), "block").c_str(),
        repair ? "." : ",\nso does `afterglow cache verify --repair`."
    );
  }
}

void print_report(const VerifyReport& report, bool repair) {
  print_blocks("damaged", report.corrupt);
  print_blocks("unreadable", report.unreadable);
  print_waiting(report.orphans);
  print_lost(report);
  print_rest(report);
  print_verdict(report, repair);
}

CacheJson blocks_json(const std::vector<BadBlock>& blocks) {
  CacheJson json = CacheJson::array();
  for (const BadBlock& bad : blocks) {
    json.push_back(
        {{"id", bad.id.hex()},
         {"folder", bad.folder},
         {"bytes", bad.bytes},
         {"code", to_string(bad.error.code)},
         {"reason", bad.error.message}}
    );
  }
  return json;
}

CacheJson report_json(const VerifyReport& report) {
  CacheJson json;
  json["damaged"] = report.is_damaged();
  json["blocks"] = report.blocks;
  json["bytes"] = report.bytes;
  json["seconds"] = report.seconds;
  json["corrupt"] = blocks_json(report.corrupt);
  json["unreadable"] = blocks_json(report.unreadable);
  json["orphans"] = blocks_json(report.orphans);
  json["lost"] = CacheJson::array();
  for (const LostTokens& lost : report.lost) {
    json["lost"].push_back(
        {{"entry", entry_name(lost.record)},
         {"model", lost.model},
         {"tokens", lost.record.length},
         {"kept_tokens", lost.kept},
         {"block", lost.block.hex()},
         {"reason", lost.is_missing ? "missing" : "damaged"}}
    );
  }
  json["manifest_error"] = report.manifest_error
                               ? CacheJson(report.manifest_error->message)
                               : CacheJson();
  json["dead_temporaries"] = report.dead_temporaries;
  json["counted_bytes"] = report.counted_bytes;
  json["lock_bytes"] =
      report.lock_bytes ? CacheJson(*report.lock_bytes) : CacheJson();
  json["removed_blocks"] = report.removed_blocks;
  json["removed_temporaries"] = report.removed_temporaries;
  json["failures"] = CacheJson::array();
  for (const Error& failure : report.failures) {
    json["failures"].push_back(failure.message);
  }
  return json;
}

int verify(const VerifyFlags& flags) {
  auto directory = CacheDirectory::open(flags.directory);
  if (!directory.ok()) return report_error(directory.error());
  ProgressLine line;
  VerifyOptions options;
  options.repair = flags.repair;
  options.progress = [&](std::uint64_t done, std::uint64_t total) {
    line.show(done, total);
  };
  const auto report = verify_cache(*directory, options);
  line.clear();
  if (!report.ok()) return report_error(report.error());
  if (flags.json) {
    print_json(report_json(*report));
  } else {
    print_report(*report, flags.repair);
  }
  return report->is_damaged() || !report->failures.empty() ? 1 : 0;
}

}  // namespace

void add_cache_verify(CLI::App& cache, Action& action) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App* command = cache.add_subcommand(
      "verify", "Read every block and check it; status 1 on damage"
  );
  add_cache_dir_flag(*command, flags->directory);
  command->add_flag(
      "--repair",
      flags->repair,
      "Remove damaged blocks and unfinished files, correct the index"
  );
  add_json_flag(*command, flags->json);
  command->callback([flags, &action] {
    action = [flags] { return verify(*flags); };
  });
}

}  // namespace afterglow
