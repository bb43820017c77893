#include <cstdio>
#include <string>

#include "cli/bench/reports.h"
#include "cli/human.h"
#include "cli/text_table.h"

namespace afterglow {
namespace {

template <class... Arguments>
std::string format(const char* text, Arguments... arguments) {
  char buffer[160];
  std::snprintf(buffer, sizeof buffer, text, arguments...);
  return buffer;
}

std::string parameters(std::uint64_t count) {
  const auto millions = static_cast<double>(count) / 1e6;
  return millions < 1000 ? format("%.2f M", millions)
                         : format("%.2f B", millions / 1000);
}

/// Bytes that decoding reads a second, of weights and KV.
double read_speed(const SpeedFigures& figures) {
  return figures.profile->bytes_a_token() * figures.mean();
}

void add_row(
    TextTable& table, const SpeedReport& report, const SpeedFigures& figures
) {
  std::string of_memory, outside;
  if (figures.profile) {
    outside = format("%.1f %%", 100 * figures.profile->outside_share());
    if (figures.test.generates) {
      of_memory =
          format("%.0f %%", 100 * read_speed(figures) / report.memory_speed);
    }
  }
  const auto bytes = static_cast<double>(report.file_bytes);
  table.add(
      {report.model_name,
       format("%.2f MiB", bytes / (1 << 20)),
       parameters(report.parameters),
       report.arithmetic,
       std::to_string(report.setup.threads),
       figures.test.name(),
       format("%.2f ± %.2f", figures.mean(), figures.deviation()),
       of_memory,
       outside}
  );
}

void print_notes(const SpeedReport& report) {
  std::printf(
      "%s, %s: loaded in %.2f s, at most %s of memory",
      report.model_name.c_str(),
      report.arithmetic.c_str(),
      report.load_seconds,
      human_bytes(report.peak_memory).c_str()
  );
  if (!report.target.empty()) {
    std::printf(", kernels for %s", report.target.c_str());
  }
  std::printf(
      "; %d threads read memory at %.1f GB/s",
      report.setup.threads,
      report.memory_speed / 1e9
  );
  for (const SpeedFigures& figures : report.figures) {
    if (!figures.profile || !figures.test.generates) continue;
    const double bytes = figures.profile->bytes_a_token();
    std::printf(
        "; %s reads %s of weights and KV a token",
        figures.test.name().c_str(),
        human_bytes(static_cast<std::uint64_t>(bytes)).c_str()
    );
  }
  std::printf(".\n");
}

void print_profile(const SpeedFigures& figures) {
  const StepProfile& profile = *figures.profile;
  TextTable table(
      {{figures.test.name()},
       {"calls/token", true},
       {"us/token", true},
       {"share", true},
       {"GB/s", true},
       {"GFLOP/s", true}}
  );
  const auto tokens = static_cast<double>(profile.tokens);
  auto time = [&](double seconds) {
    return format("%.2f", seconds * 1e6 / tokens);
  };
  auto share = [&](double seconds) {
    return format("%.1f %%", 100 * seconds / profile.thread_seconds);
  };
  for (const KernelTime& kernel : profile.kernels) {
    const bool works = kernel.flops > 0;
    const double giga = 1e9 * kernel.seconds;
    table.add(
        {kernel.name,
         format("%.2f", static_cast<double>(kernel.calls) / tokens),
         time(kernel.seconds),
         share(kernel.seconds),
         works && figures.test.generates ? format("%.1f", kernel.bytes / giga)
                                         : "",
         works ? format("%.1f", kernel.flops / giga) : ""}
    );
  }
  const double rest = profile.thread_seconds * profile.outside_share();
  table.add({"no kernel", "", time(rest), share(rest), "", ""});
  std::printf("\n%s", table.format().c_str());
}

}  // namespace

void print_table(std::span<const SpeedReport> reports) {
  TextTable table(
      {{"model"},
       {"size", true},
       {"params", true},
       {"backend"},
       {"threads", true},
       {"test", true},
       {"t/s", true},
       {"of memory speed", true},
       {"no kernel", true}}
  );
  for (const SpeedReport& report : reports) {
    for (const SpeedFigures& figures : report.figures) {
      add_row(table, report, figures);
    }
  }
  std::printf("%s\n", table.format().c_str());
  for (const SpeedReport& report : reports) print_notes(report);
}

void print_profiles(std::span<const SpeedReport> reports) {
  std::printf(
      "\nTime of all threads, added up; \"no kernel\" is what lies between "
      "kernels, and\nwaiting for other threads. GB/s and GFLOP/s are those of "
      "one thread.\n"
  );
  for (const SpeedReport& report : reports) {
    std::printf(
        "\n%s, %s, %d threads\n",
        report.model_name.c_str(),
        report.arithmetic.c_str(),
        report.setup.threads
    );
    for (const SpeedFigures& figures : report.figures) {
      if (figures.profile) print_profile(figures);
    }
  }
}

}  // namespace afterglow
