#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/bench/reports.h"

namespace afterglow {
namespace {

using json = nlohmann::ordered_json;

json to_json(const StepProfile& profile, bool generates) {
  json kernels = json::array();
  for (const KernelTime& kernel : profile.kernels) {
    kernels.push_back(
        {{"name", kernel.name},
         {"calls", kernel.calls},
         {"seconds", kernel.seconds}}
    );
    if (kernel.flops > 0) {
      kernels.back()["bytes"] = kernel.bytes;
      kernels.back()["flops"] = kernel.flops;
    }
  }
  json object{
      {"thread_seconds", profile.thread_seconds},
      {"outside_kernels", profile.outside_share()}};
  if (generates) object["bytes_per_token"] = profile.bytes_a_token();
  object["kernels"] = std::move(kernels);
  return object;
}

json to_json(const SpeedReport& report, const SpeedFigures& figures) {
  const bool on_cpu = report.setup.backend == Backend::kCpu;
  json object{
      {"test", figures.test.name()},
      {"tokens_per_second", figures.mean()},
      {"deviation", figures.deviation()},
      {"samples", figures.tokens_per_second},
      {"model", report.model_name},
      {"path", report.setup.model},
      {"quantization", report.quantization},
      {"size", report.file_bytes},
      {"params", report.parameters},
      {"backend", on_cpu ? "cpu" : "mlx"},
      {"threads", report.setup.threads},
      {"load_seconds", report.load_seconds},
      {"peak_memory", report.peak_memory},
      {"memory_bytes_per_second", report.memory_speed},
  };
  if (on_cpu) {
    object["activations"] = to_string(report.setup.activations);
    object["target"] = report.target;
  }
  if (figures.profile) {
    const bool generates = figures.test.generates;
    object["profile"] = to_json(*figures.profile, generates);
    if (generates) {
      object["memory_speed_share"] = figures.profile->bytes_a_token() *
                                     figures.mean() / report.memory_speed;
    }
  }
  return object;
}

}  // namespace

void print_json(std::span<const SpeedReport> reports) {
  json list = json::array();
  for (const SpeedReport& report : reports) {
    for (const SpeedFigures& figures : report.figures) {
      list.push_back(to_json(report, figures));
    }
  }
  std::printf("%s\n", list.dump(2).c_str());
}

}  // namespace afterglow
