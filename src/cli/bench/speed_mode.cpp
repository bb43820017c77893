#include "base/thread_pool.h"
#include "cli/bench/modes.h"
#include "cli/bench/reports.h"
#include "cli/bench/speed.h"
#include "cli/default_model.h"
#include "cli/report_error.h"

namespace afterglow {
namespace {

std::vector<SpeedTest> tests_of(const SpeedFlags& flags) {
  std::vector<SpeedTest> tests;
  for (const std::size_t depth : flags.depths) {
    for (const bool generates : {false, true}) {
      for (const std::size_t n : generates ? flags.answers : flags.prompts) {
        if (n > 0) tests.push_back({generates, n, depth});
      }
    }
  }
  return tests;
}

std::vector<SpeedSetup> setups_of(
    const SpeedFlags& flags, const std::vector<std::string>& models
) {
  // MLX has no activation modes.
  std::vector<Activations> modes = flags.activations;
  if (flags.backend == Backend::kMlx) modes.resize(1);
  std::vector<SpeedSetup> setups;
  for (const std::string& model : models) {
    for (const int threads : flags.threads) {
      for (const Activations mode : modes) {
        setups.push_back({model, flags.backend, mode, thread_count(threads)});
      }
    }
  }
  return setups;
}

}  // namespace

int bench_speed(const SpeedFlags& flags, bool json) {
  SpeedOptions options{
      .tests = tests_of(flags),
      .repetitions = flags.repetitions,
      .profile = !flags.skip_profile};
  if (options.tests.empty()) {
    return report_error(
        {Code::kInvalidArgument,
         "[bench] nothing to measure: both -p and -n are 0"}
    );
  }
  std::vector<std::string> models = flags.models;
  if (models.empty()) models.emplace_back();
  for (std::string& model : models) {
    auto found = model_or_default(model);
    if (!found) return report_error(found.error());
    model = *std::move(found);
  }
  std::vector<SpeedReport> reports;
  for (const SpeedSetup& setup : setups_of(flags, models)) {
    auto report = measure_speed(setup, options);
    if (!report) return report_error(report.error());
    reports.push_back(std::move(*report));
  }
  if (json) {
    print_json(reports);
    return 0;
  }
  print_table(reports);
  if (flags.show_profile) print_profiles(reports);
  return 0;
}

int bench_restore(const RestoreBenchOptions& options, bool json) {
  auto report = run_restore_bench(options);
  if (!report) return report_error(report.error());
  json ? print_json(*report) : print_table(*report);
  return 0;
}

}  // namespace afterglow
