#include "server/random_id.h"

#include <cstdio>
#include <random>

namespace afterglow {

std::string random_id(const char* prefix) {
  static thread_local std::mt19937_64 random{std::random_device{}()};
  char digits[33];
  std::snprintf(
      digits,
      sizeof digits,
      "%016llx%016llx",
      static_cast<unsigned long long>(random()),
      static_cast<unsigned long long>(random())
  );
  return std::string(prefix) + digits;
}

}  // namespace afterglow
