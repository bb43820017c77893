#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace afterglow {

void check_failed(
    const char* file, int line, const char* condition, const std::string& what
) {
  std::fprintf(
      stderr,
      "%s:%d: broken invariant: %s%s%s\n",
      file,
      line,
      condition,
      what.empty() ? "" : ": ",
      what.c_str()
  );
  std::fflush(stderr);
  std::abort();
}

}  // namespace afterglow
