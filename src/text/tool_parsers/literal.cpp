#include "text/tool_parsers/literal.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "text/tool_parsers/scan.h"

namespace afterglow::tool_parsers {
namespace {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Without underscores, of which one may stand between two digits.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const bool between = i > 0 && i + 1 < text.size() && text[i - 1] != '_' &&
                         is_word(text[i - 1]) && text[i + 1] != '_' &&
                         is_word(text[i + 1]);
    if (!between) {
      return {};
    }
  }
  return out;
}

/// All of a text as an integer, or nothing; beyond 64 bits as floating point.
std::optional<Json> integer(std::string_view digits, bool negative, int base) {
  constexpr std::uint64_t kLowest = std::uint64_t{1} << 63;
  std::uint64_t size = 0;
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, size, base);
  if (read.ptr != end || digits.empty()) {
    return {};
  }
  if (read.ec != std::errc{} || (negative && size > kLowest)) {
    double wide = 0;
    const auto parsed = std::from_chars(digits.data(), end, wide);
    if (base != 10 || parsed.ec != std::errc{}) {
      return {};
    }
    return Json(negative ? -wide : wide);
  }
  if (negative) {
    return Json(static_cast<std::int64_t>(-size));
  }
  return size <= INT64_MAX ? Json(static_cast<std::int64_t>(size)) : Json(size);
}

std::optional<double> floating(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  const bool whole = read.ptr == end && read.ec == std::errc{};
  return whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

bool take_sign(std::string_view& text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) {
    text.remove_prefix(1);
  }
  return negative;
}

void append_utf8(std::string& out, char32_t c) {
  const auto byte = [&](char32_t bits) { out += static_cast<char>(bits); };
  const auto tail = [&](int shift) { byte(0x80 | ((c >> shift) & 0x3f)); };
  if (c < 0x80) {
    byte(c);
  } else if (c < 0x800) {
    byte(0xc0 | (c >> 6));
    tail(0);
  } else if (c < 0x10000) {
    byte(0xe0 | (c >> 12));
    tail(6);
    tail(0);
  } else {
    byte(0xf0 | (c >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

/// A key as json.dumps writes it, or nothing.
std::optional<std::string> key_text(const Json& key) {
  if (key.is_string()) {
    return key.get<std::string>();
  }
  return key.is_structured() ? std::nullopt : std::optional(dump(key));
}

}  // namespace

std::optional<Json> python_literal(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) {
    text.remove_prefix(1);
  }
  PythonReader reader(text, false);
  auto first = reader.value();
  if (!first) {
    return {};
  }
  if (!reader.peek(',')) {
    return reader.at_end() ? first : std::nullopt;
  }
  Json tuple = Json::array({*std::move(first)});
  while (reader.take(',') && !reader.at_end()) {
    auto next = reader.value();
    if (!next) {
      return {};
    }
    tuple.push_back(*std::move(next));
  }
  return reader.at_end() ? std::optional(std::move(tuple)) : std::nullopt;
}

std::optional<Json> python_int(std::string_view text) {
  text = strip(text);
  const bool negative = take_sign(text);
  const auto digits = without_underscores(text);
  return digits ? integer(*digits, negative, 10) : std::nullopt;
}

std::optional<double> python_float(std::string_view text) {
  text = strip(text);
  const bool negative = take_sign(text);
  const auto digits = without_underscores(text);
  if (!digits || digits->starts_with('-')) {
    return {};
  }
  const auto size = floating(*digits);
  return size && negative ? std::optional(-*size) : size;
}

Json whole_if_possible(double number) {
  constexpr double kEnd = 9223372036854775808.0;
  if (std::trunc(number) != number || number < -kEnd || number >= 2 * kEnd) {
    return number;
  }
  return number < kEnd ? Json(static_cast<std::int64_t>(number))
                       : Json(static_cast<std::uint64_t>(number));
}

void PythonReader::skip() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    const bool line_end = c == '\n' || c == '\r';
    const bool space = c == ' ' || c == '\t' || c == '\f';
    if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (space || (line_end && depth_ > 0)) {
      ++at_;
    } else {
      return;
    }
  }
}

bool PythonReader::peek(char c) {
  skip();
  return at_ < text_.size() && text_[at_] == c;
}

bool PythonReader::take(char c) {
  const bool found = peek(c);
  at_ += found;
  return found;
}

bool PythonReader::at_end() const {
  PythonReader rest = *this;
  rest.open();
  rest.skip();
  return rest.at_ == text_.size();
}

std::optional<std::string> PythonReader::name(bool dots) {
  skip();
  const auto start = at_;
  do {
    at_ += start < at_;
    const auto size = word_size(rest());
    if (size == 0 || is_digit(rest().front())) {
      return {};
    }
    at_ += size;
  } while (dots && rest().starts_with('.'));
  return std::string(text_.substr(start, at_ - start));
}

std::optional<Json> PythonReader::value() {
  skip();
  if (rest().empty()) {
    return {};
  }
  const char c = rest().front();
  if (c == '[' || c == '(' || c == '{') {
    if (depth_ == kDeepest) {
      return {};
    }
    ++at_;
    open();
    auto found = c == '{' ? dict() : sequence(c == '[' ? ']' : ')');
    close();
    return found;
  }
  if (at_string()) {
    return strings();
  }
  const bool numeric = is_digit(c) || c == '.' || c == '-' || c == '+';
  return numeric ? number() : word();
}

std::optional<Json> PythonReader::sequence(char closing) {
  Json items = Json::array();
  bool comma = false;
  while (!take(closing)) {
    if (!items.empty() && !comma) {
      return {};
    }
    auto item = value();
    if (!item) {
      return {};
    }
    items.push_back(*std::move(item));
    comma = take(',');
  }
  const bool parenthesized = closing == ')' && items.size() == 1 && !comma;
  return parenthesized ? std::move(items[0]) : std::move(items);
}

std::optional<Json> PythonReader::dict() {
  Json members = Json::object();
  bool more = true;
  while (!take('}')) {
    auto key = more ? value() : std::nullopt;
    const auto name = key ? key_text(*key) : std::nullopt;
    if (!name || !take(':')) {
      return {};
    }
    auto item = value();
    if (!item) {
      return {};
    }
    members[*name] = *std::move(item);
    more = take(',');
  }
  return members;
}

std::optional<Json> PythonReader::word() {
  const auto found = name(false);
  if (!found) {
    return {};
  }
  if (*found == "True" || (json_names_ && *found == "true")) {
    return Json(true);
  }
  if (*found == "False" || (json_names_ && *found == "false")) {
    return Json(false);
  }
  if (*found == "None" || (json_names_ && *found == "null")) {
    return Json(nullptr);
  }
  return {};
}

std::optional<Json> PythonReader::number() {
  auto text = rest();
  const bool negative = take_sign(text);
  while (text.starts_with(' ') || text.starts_with('\t')) {
    text.remove_prefix(1);
  }
  auto size = word_size(text, ".");
  const bool based = text.size() > 1 && text[0] == '0' &&
                     std::string_view("xXoObB").find(text[1]) != text.npos;
  const bool exponent = size > 0 && !based && size < text.size() &&
                        (text[size - 1] == 'e' || text[size - 1] == 'E') &&
                        (text[size] == '+' || text[size] == '-');
  if (exponent) {
    size += 1 + word_size(text.substr(size + 1));
  }
  if (size == 0 || !(is_digit(text[0]) || text[0] == '.')) {
    return {};
  }
  at_ = static_cast<std::size_t>(text.data() - text_.data()) + size;
  text = text.substr(0, size);
  if (based) {
    const auto digits = without_underscores("0" + std::string(text.substr(2)));
    const char kind = lower(text)[1];
    const int base = kind == 'x' ? 16 : kind == 'o' ? 8 : 2;
    return digits && size > 2 ? integer(*digits, negative, base) : std::nullopt;
  }
  const auto digits = without_underscores(text);
  if (!digits) {
    return {};
  }
  if (digits->find_first_of(".eE") != std::string::npos) {
    const auto found = floating(*digits);
    return found ? std::optional<Json>(negative ? -*found : *found)
                 : std::nullopt;
  }
  const bool zeros = digits->find_first_not_of('0') == std::string::npos;
  return digits->starts_with('0') && !zeros ? std::nullopt
                                            : integer(*digits, negative, 10);
}

bool PythonReader::at_string() const {
  auto text = rest();
  if (!text.empty() && std::string_view("rRuU").find(text[0]) != text.npos) {
    text.remove_prefix(1);
  }
  return text.starts_with('"') || text.starts_with('\'');
}

std::optional<Json> PythonReader::strings() {
  std::string out;
  do {
    if (!string_into(out)) {
      return {};
    }
    skip();
  } while (at_string());
  return out;
}

bool PythonReader::string_into(std::string& out) {
  const char prefix = text_[at_];
  at_ += prefix != '"' && prefix != '\'';
  const bool raw = prefix == 'r' || prefix == 'R';
  const char quote = text_[at_];
  const std::string triple(3, quote);
  const bool long_form = rest().starts_with(triple);
  const std::string_view closing =
      std::string_view(triple).substr(0, long_form ? 3 : 1);
  at_ += closing.size();
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (rest().starts_with(closing)) {
      at_ += closing.size();
      return true;
    }
    if (c == '\n' && !long_form) {
      return false;
    }
    ++at_;
    if (c != '\\') {
      out += c;
    } else if (raw) {
      out += c;
      out += rest().substr(0, 1);
      ++at_;
    } else if (!escape_into(out)) {
      return false;
    }
  }
  return false;
}

std::optional<char32_t> PythonReader::code_point(std::size_t digits) {
  const auto text = rest().substr(0, digits);
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value, 16);
  if (text.size() < digits || read.ptr != end || value > 0x10ffff) {
    return {};
  }
  at_ += digits;
  return value;
}

bool PythonReader::escape_into(std::string& out) {
  if (rest().empty()) {
    return false;
  }
  const char c = text_[at_++];
  constexpr std::string_view kNames = "abfnrtv\\'\"";
  constexpr std::string_view kValues = "\a\b\f\n\r\t\v\\'\"";
  if (const auto at = kNames.find(c); at != kNames.npos) {
    out += kValues[at];
    return true;
  }
  if (c == 'x' || c == 'u' || c == 'U') {
    auto found = code_point(c == 'x' ? 2 : c == 'u' ? 4 : 8);
    if (found && *found >= 0xd800 && *found < 0xdc00 &&
        rest().starts_with("\\u")) {
      at_ += 2;
      const auto low = code_point(4);
      const bool pair = low && *low >= 0xdc00 && *low < 0xe000;
      found = pair ? std::optional(
                         0x10000 + ((*found - 0xd800) << 10) + (*low - 0xdc00)
                     )
                   : std::nullopt;
    }
    if (!found || (*found >= 0xd800 && *found < 0xe000)) {
      return false;
    }
    append_utf8(out, *found);
    return true;
  }
  if (c >= '0' && c <= '7') {
    char32_t value = static_cast<char32_t>(c - '0');
    for (int i = 0; i < 2 && !rest().empty(); ++i) {
      const char digit = rest().front();
      if (digit < '0' || digit > '7') {
        break;
      }
      value = value * 8 + static_cast<char32_t>(digit - '0');
      ++at_;
    }
    append_utf8(out, value);
    return true;
  }
  if (c == 'N') {
    return false;
  }
  if (c != '\n') {
    out += {'\\', c};
  }
  return true;
}

}  // namespace afterglow::tool_parsers
