#include "cli/parse_duration.h"

#include <charconv>

namespace afterglow {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kMost = 200ll * 365 * 86400;  // seconds

Error wrong(const std::string& text) {
  return {
      Code::kInvalidArgument,
      "'" + text +
          "' is no span of time; write it as 90, 90s, 15m, 12h, 7d "
          "or 2w"};
}

}  // namespace

Result<std::int64_t> parse_duration(const std::string& text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [unit, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || unit == text.data() || number < 0) {
    return wrong(text);
  }
  const std::string name(unit, end);
  const std::int64_t seconds = name.empty() || name == "s" ? 1
                               : name == "m"               ? 60
                               : name == "h"               ? 3600
                               : name == "d"               ? 86400
                               : name == "w"               ? 7 * 86400
                                                           : 0;
  if (seconds == 0 || text.front() == '-' || number > kMost / seconds) {
    return wrong(text);
  }
  return number * seconds * kSecond;
}

}  // namespace afterglow
