#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace afterglow {

/// What speed depends on, as far as the system tells.
struct Machine {
  struct Cache {
    std::string name;  // "L1d", "L2", "L3"
    std::uint64_t bytes = 0;
  };
  std::string processor;  // "unknown" where the system does not say
  std::vector<Cache> caches;
  std::uint64_t memory = 0;
};

Machine this_machine();

}  // namespace afterglow
