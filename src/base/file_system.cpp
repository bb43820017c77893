#include "base/file_system.h"

#include <algorithm>

namespace afterglow {

namespace {

constexpr std::size_t kMaxNameBytes = 4095;

Error refused(
    std::string_view operation, std::string_view name, const char* why
) {
  return {
      Code::kPermission,
      "[files." + std::string(operation) + "] " + std::string(name) + ": " +
          why};
}

}  // namespace

Status check_file_name(
    std::string_view operation, std::string_view name, bool may_be_root
) {
  if (name.empty()) {
    return may_be_root ? Status() : refused(operation, name, "empty name");
  }
  if (name.size() > kMaxNameBytes) {
    return refused(operation, name.substr(0, 64), "name too long");
  }
  if (name.find('\0') != std::string_view::npos) {
    return refused(operation, "(name)", "NUL byte in a name");
  }
  if (name.front() == '/') {
    return refused(operation, name, "absolute names are refused");
  }
  std::size_t begin = 0;
  while (begin <= name.size()) {
    std::size_t end = std::min(name.find('/', begin), name.size());
    std::string_view part = name.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") {
      return refused(operation, name, "empty, '.' or '..' part refused");
    }
    begin = end + 1;
  }
  return {};
}

}  // namespace afterglow
