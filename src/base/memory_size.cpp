#include "base/memory_size.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>

namespace afterglow {

std::uint64_t physical_memory() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
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
