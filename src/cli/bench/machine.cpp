#include "cli/bench/machine.h"

#include <fstream>
#include <string_view>

#ifdef __APPLE__
#include <sys/sysctl.h>
#endif

#include "base/memory_size.h"

namespace afterglow {
namespace {

#ifdef __APPLE__

std::uint64_t number(const char* name) {
  std::uint64_t value = 0;
  std::size_t size = sizeof value;
  return sysctlbyname(name, &value, &size, nullptr, 0) == 0 ? value : 0;
}

std::string processor() {
  char name[128] = "unknown";
  std::size_t size = sizeof name;
  sysctlbyname("machdep.cpu.brand_string", name, &size, nullptr, 0);
  return name;
}

std::vector<Machine::Cache> caches() {
  return {
      {"L1d", number("hw.l1dcachesize")},
      {"L2", number("hw.l2cachesize")},
      {"L3", number("hw.l3cachesize")}};
}

#else

/// The first line of a file of /sys; empty where there is none.
std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// x86 has "model name", ARM at most its number.
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (line.starts_with("model name") || line.starts_with("CPU part")) {
      return line.substr(colon + 2);
    }
  }
  return "unknown";
}

std::vector<Machine::Cache> caches() {
  std::vector<Machine::Cache> caches;
  const std::string all = "/sys/devices/system/cpu/cpu0/cache/index";
  for (int i = 0;; ++i) {
    const std::string one = all + std::to_string(i) + "/";
    const std::string size = line_of(one + "size");
    if (size.empty()) return caches;
    const std::string type = line_of(one + "type");
    if (type == "Instruction") continue;
    const std::string name =
        "L" + line_of(one + "level") + (type == "Data" ? "d" : "");
    const bool in_mebibytes = size.back() == 'M';
    caches.push_back({name, std::stoull(size) << (in_mebibytes ? 20 : 10)});
  }
}

#endif

}  // namespace

Machine this_machine() {
  return {processor(), caches(), physical_memory()};
}

}  // namespace afterglow
