#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/bench/reports.h"
#include "cli/human.h"
#include "cli/text_table.h"

namespace afterglow {
namespace {

using json = nlohmann::ordered_json;

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

}  // namespace

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

}  // namespace afterglow
