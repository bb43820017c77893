#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/thread_pool.h"
#include "cli/bench/machine.h"
#include "cli/bench/modes.h"
#include "cli/human.h"
#include "cli/report_error.h"
#include "cli/text_table.h"
#include "ops/cpu/cpu_profile.h"
#include "ops/numerics.h"

namespace afterglow {
namespace {

std::string state_of(const CpuTarget& target) {
  if (target.used) {
    return target.forced ? "used: AFTERGLOW_TARGET names it"
                         : "used: the fastest that runs here";
  }
  if (target.runs_here) return "runs here";
  std::string names;
  for (const std::string& name : target.missing) names += " " + name;
  return "this processor lacks" + names;
}

void print_text(const Machine& machine, const std::vector<CpuTarget>& targets) {
  std::printf(
      "Processor    %s, %d threads\n",
      machine.processor.c_str(),
      thread_count(0)
  );
  std::string caches;
  for (const Machine::Cache& cache : machine.caches) {
    caches += (caches.empty() ? "" : ", ") + cache.name + " " +
              human_bytes(cache.bytes);
  }
  std::printf("Caches       %s\n", caches.empty() ? "?" : caches.c_str());
  std::printf("Memory       %s\n", human_bytes(machine.memory).c_str());
  std::printf("Activations  %s, unless told\n", to_string(Activations{}));
  std::printf("Numerics     version %u\n\n", kNumerics);
  TextTable table({{"kernels"}, {"state"}});
  for (const CpuTarget& target : targets) {
    table.add({target.name, state_of(target)});
  }
  std::printf("%s", table.format().c_str());
}

void print_json(const Machine& machine, const std::vector<CpuTarget>& targets) {
  using json = nlohmann::ordered_json;
  json caches = json::object();
  for (const Machine::Cache& cache : machine.caches) {
    caches[cache.name] = cache.bytes;
  }
  json list = json::array();
  std::string used;
  bool forced = false;
  for (const CpuTarget& target : targets) {
    list.push_back(
        {{"name", target.name},
         {"runs_here", target.runs_here},
         {"missing", target.missing}}
    );
    if (!target.used) continue;
    used = target.name;
    forced = target.forced;
  }
  const json object{
      {"processor", machine.processor},
      {"threads", thread_count(0)},
      {"caches", caches},
      {"memory", machine.memory},
      {"activations", to_string(Activations{})},
      {"numerics", kNumerics},
      {"target", used},
      {"target_forced", forced},
      {"targets", list}};
  std::printf("%s\n", object.dump(2).c_str());
}

}  // namespace

int bench_info(bool json) {
  auto targets = cpu_targets();
  if (!targets) {
    return report_error(targets.error());
  }
  const Machine machine = this_machine();
  json ? print_json(machine, *targets) : print_text(machine, *targets);
  return 0;
}

}  // namespace afterglow
