#include "server/log_value.h"

#include <algorithm>

namespace afterglow {
namespace {

bool is_printable(char c) {
  return c >= 0x20 && c < 0x7f;
}

bool is_bare(char c) {
  return is_printable(c) && c != ' ' && c != '"' && c != '\\' && c != '=';
}

bool is_control(char c) {
  return (c >= 0 && c < 0x20) || c == 0x7f;
}

void append_hex(char c, std::string& to) {
  static constexpr char kHex[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  to += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
}

}  // namespace

std::string log_value(std::string_view text) {
  if (!text.empty() && std::ranges::all_of(text, is_bare)) {
    return std::string(text);
  }
  std::string result = "\"";
  for (const char c : text) {
    if (!is_printable(c)) {
      append_hex(c, result);
      continue;
    }
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string log_line(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (is_control(c)) {
      append_hex(c, result);
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace afterglow
