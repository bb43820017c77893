#include "cli/report_error.h"

#include <cstdio>

namespace afterglow {

int report_error(const Error& error) {
  std::fprintf(stderr, "afterglow: %s\n", error.message.c_str());
  return error.code == Code::kCancelled ? 130 : 1;
}

}  // namespace afterglow
