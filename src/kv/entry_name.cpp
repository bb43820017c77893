#include "kv/entry_name.h"

#include <algorithm>
#include <charconv>

namespace afterglow {
namespace {

constexpr std::size_t kShortDigits = 12;
constexpr std::size_t kLeastDigits = 4;
constexpr std::size_t kMostDigits = 64;

std::string name_with(const EntryRecord& entry, std::size_t digits) {
  std::string hex = entry.path.empty() ? "" : entry.path.back().hex();
  return hex.substr(0, digits) + ":" + std::to_string(entry.length);
}

bool is_hex_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ||
         (c >= 'A' && c <= 'F');
}

}  // namespace

std::string entry_name(const EntryRecord& entry) {
  return name_with(entry, kMostDigits);
}

std::string short_entry_name(const EntryRecord& entry) {
  return name_with(entry, kShortDigits);
}

bool EntryName::matches(const EntryRecord& entry) const {
  return !entry.path.empty() &&
         entry.path.back().hex().starts_with(hex_prefix) &&
         (!tokens || *tokens == entry.length);
}

Result<EntryName> parse_entry_name(std::string_view text) {
  std::string_view digits = text.substr(0, text.find(':'));
  EntryName name;
  bool good = digits.size() >= kLeastDigits && digits.size() <= kMostDigits &&
              std::all_of(digits.begin(), digits.end(), is_hex_digit);
  for (char c : digits) {
    name.hex_prefix += c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c;
  }
  if (good && digits.size() < text.size()) {
    std::string_view number = text.substr(digits.size() + 1);
    std::size_t tokens = 0;
    auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), tokens);
    good = error == std::errc() && end == number.data() + number.size();
    name.tokens = tokens;
  }
  if (!good) {
    return Error{
        Code::kInvalidArgument,
        "'" + std::string(text) +
            "' is not an entry's id: at least 4 hexadecimal digits, then "
            "perhaps ':' and its tokens, as 3f2a90c1d4e5:1024"};
  }
  return name;
}

}  // namespace afterglow
