#include "cli/human.h"

#include <algorithm>
#include <array>
#include <ctime>

namespace afterglow {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

}  // namespace

std::string human_span(std::int64_t ns) {
  const std::int64_t seconds = std::max<std::int64_t>(ns, 0) / kSecond;
  if (seconds < 60) return std::to_string(seconds) + " s";
  if (seconds < 3600) return std::to_string(seconds / 60) + " min";
  if (seconds < 48 * 3600) return std::to_string(seconds / 3600) + " h";
  return std::to_string(seconds / 86400) + " d";
}

std::string human_count(std::uint64_t count, const std::string& noun) {
  std::string text = std::to_string(count) + " " + noun;
  if (count == 1) return text;
  if (text.back() == 'y') {
    text.pop_back();
    return text + "ies";
  }
  return text + "s";
}

std::string human_time(std::int64_t unix_ns) {
  const std::time_t seconds = static_cast<std::time_t>(unix_ns / kSecond);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  std::array<char, 32> text;
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local);
  return text.data();
}

}  // namespace afterglow
