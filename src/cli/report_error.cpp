#include "cli/report_error.h"

#include <cstdio>
#include <exception>
#include <string>

#include "afterglow/error.h"

namespace afterglow {

int report_error(const Error& error) {
  std::fprintf(stderr, "afterglow: %s\n", error.message.c_str());
  return error.code == Code::kCancelled ? 130 : 1;
}

int report_exceptions(const std::function<int()>& command) {
  try {
    return command();
  } catch (const Exception& exception) {
    return report_error({exception.code(), exception.what()});
  } catch (const std::exception& exception) {
    return report_error(
        {Code::kInternal,
         std::string("[cli] it went wrong: ") + exception.what()}
    );
  }
}

}  // namespace afterglow
