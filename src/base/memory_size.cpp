#include "base/memory_size.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>
#include <system_error>

namespace afterglow {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

/// "max", and what cannot be read, is no limit.
std::uint64_t read_limit(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  std::uint64_t limit = kNoLimit;
  if (!(file >> word)) return kNoLimit;
  const char* end = word.data() + word.size();
  const auto read = std::from_chars(word.data(), end, limit);
  return read.ec == std::errc() && read.ptr == end ? limit : kNoLimit;
}

/// Of a group and all above it. A container may not see its own folder, but
/// then finds its limit at the top.
std::uint64_t least_limit(
    const fs::path& top, const std::string& group, const char* name
) {
  std::uint64_t least = read_limit(top / name);
  fs::path folder = top;
  for (const fs::path& part : fs::path(group).relative_path()) {
    folder /= part;
    least = std::min(least, read_limit(folder / name));
  }
  return least;
}

bool names_memory(const std::string& controllers) {
  return ("," + controllers + ",").find(",memory,") != std::string::npos;
}

}  // namespace

std::uint64_t physical_memory() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
}

std::uint64_t control_group_memory(const fs::path& root) {
  const fs::path groups = root / "sys/fs/cgroup";
  std::ifstream file(root / "proc/self/cgroup");
  std::uint64_t least = kNoLimit;
  // "number:controllers:group"; those of version 2 name no controllers.
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second =
        first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      least = std::min(least, least_limit(groups, group, "memory.max"));
    } else if (names_memory(controllers)) {
      const fs::path top = groups / "memory";
      least = std::min(least, least_limit(top, group, "memory.limit_in_bytes"));
    }
  }
  return least;
}

std::uint64_t usable_memory() {
  return std::min(physical_memory(), control_group_memory());
}

std::uint64_t peak_memory() {
#ifdef __linux__
  // VmHWM, which reset_peak_memory() can lower, unlike ru_maxrss.
  if (std::FILE* file = std::fopen("/proc/self/status", "r")) {
    char line[256];
    unsigned long long kilobytes = 0;
    while (std::fgets(line, sizeof line, file) != nullptr) {
      if (std::sscanf(line, "VmHWM: %llu kB", &kilobytes) == 1) break;
    }
    std::fclose(file);
    if (kilobytes > 0) return kilobytes * 1024;
  }
#endif
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
#ifdef __APPLE__
  return static_cast<std::uint64_t>(usage.ru_maxrss);
#else
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
#endif
}

void reset_peak_memory() {
#ifdef __linux__
  if (std::FILE* file = std::fopen("/proc/self/clear_refs", "w")) {
    std::fputs("5", file);
    std::fclose(file);
  }
#endif
}

}  // namespace afterglow
