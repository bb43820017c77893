#include "cli/parse_size.h"

#include <cctype>
#include <limits>

namespace afterglow {
namespace {

using Wide = unsigned __int128;

constexpr int kFractionDigits = 18;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// 0 for an unknown unit.
std::uint64_t unit_bytes(std::string unit) {
  for (char& c : unit) {
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  if (unit.empty()) return 1;
  const std::string powers = "KMGT";
  const std::size_t power = powers.find(unit.front());
  if (power == std::string::npos) return 0;
  const std::string rest = unit.substr(1);
  const bool binary = rest == "IB";
  if (!binary && !rest.empty() && rest != "B") return 0;
  std::uint64_t bytes = 1;
  for (std::size_t i = 0; i <= power; ++i) bytes *= binary ? 1024 : 1000;
  return bytes;
}

}  // namespace

Result<std::uint64_t> parse_size(const std::string& text) {
  const Error bad{
      Code::kInvalidArgument,
      "'" + text + "' is not a size; write a number and a unit, such as 4GB"};
  std::size_t at = 0;
  Wide whole = 0;
  for (; at < text.size() && is_digit(text[at]); ++at) {
    whole = whole * 10 + static_cast<unsigned>(text[at] - '0');
    if (whole > std::numeric_limits<std::uint64_t>::max()) return bad;
  }
  bool any = at > 0;
  Wide fraction = 0;
  Wide scale = 1;
  if (at < text.size() && text[at] == '.') {
    int digits = 0;
    for (++at; at < text.size() && is_digit(text[at]); ++at) {
      any = true;
      if (digits++ >= kFractionDigits) continue;
      fraction = fraction * 10 + static_cast<unsigned>(text[at] - '0');
      scale *= 10;
    }
  }
  while (at < text.size() && text[at] == ' ') ++at;
  const std::uint64_t unit = unit_bytes(text.substr(at));
  if (!any || unit == 0) return bad;
  const Wide bytes = whole * unit + fraction * unit / scale;
  if (bytes > std::numeric_limits<std::uint64_t>::max()) return bad;
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace afterglow
