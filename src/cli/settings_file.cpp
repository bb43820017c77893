#include "cli/settings_file.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>

namespace afterglow {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_key_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         c == '-' || c == '_';
}

/// Control characters that no TOML file may hold, but for line ends.
bool is_forbidden(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7f;
}

void append_utf8(std::string& text, std::uint32_t code) {
  const auto tail = [&](int shift) {
    text += static_cast<char>(0x80 | ((code >> shift) & 0x3f));
  };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xe0 | (code >> 12));
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xf0 | (code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

/// Digits with single underscores between them; these are dropped.
/// False: there is no digit at the front, or an underscore is out of place.
bool take_digits(std::string_view& text, std::string& to) {
  if (text.empty() || !is_digit(text.front())) return false;
  while (!text.empty()) {
    if (is_digit(text.front())) {
      to += text.front();
    } else if (text.front() != '_') {
      break;
    } else if (text.size() < 2 || !is_digit(text[1])) {
      return false;
    }
    text.remove_prefix(1);
  }
  return true;
}

/// A decimal number as TOML writes it, without underscores and a plus sign;
/// empty: it is none.
std::string number(std::string_view text) {
  std::string result;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    if (text.front() == '-') result += '-';
    text.remove_prefix(1);
  }
  const bool zero = !text.empty() && text.front() == '0';
  const std::size_t sign = result.size();
  if (!take_digits(text, result)) return {};
  if (zero && result.size() > sign + 1) return {};  // 08
  if (!text.empty() && text.front() == '.') {
    result += '.';
    text.remove_prefix(1);
    if (!take_digits(text, result)) return {};
  }
  if (!text.empty() && (text.front() == 'e' || text.front() == 'E')) {
    result += 'e';
    text.remove_prefix(1);
    if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
      result += text.front();
      text.remove_prefix(1);
    }
    if (!take_digits(text, result)) return {};
  }
  return text.empty() ? result : std::string();
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::vector<Setting>> run() {
    check_characters();
    skip_blank();
    while (!fault_ && !at_end()) {
      statement();
      skip_blank();
    }
    if (fault_) return *std::move(fault_);
    return std::move(settings_);
  }

 private:
  bool at_end() const { return at_ == text_.size(); }
  char now() const { return at_end() ? '\0' : text_[at_]; }
  bool starts(std::string_view with) const {
    return text_.substr(at_).starts_with(with);
  }
  bool take(std::string_view what) {
    if (!starts(what)) return false;
    at_ += what.size();
    return true;
  }
  void skip_spaces() {
    while (now() == ' ' || now() == '\t') ++at_;
  }
  bool at_line_end() const { return starts("\n") || starts("\r\n"); }
  void skip_comment() {
    if (now() != '#') return;
    while (!at_end() && !at_line_end()) ++at_;
  }
  /// Spaces, comments and line ends.
  void skip_blank() {
    for (;;) {
      skip_spaces();
      skip_comment();
      if (!at_line_end()) return;
      take_line_end();
    }
  }
  void take_line_end() {
    at_ += now() == '\r' ? 2 : 1;
    ++line_;
  }

  void fail(std::size_t line, const std::string& message) {
    if (fault_) return;
    fault_ =
        Error{Code::kInvalidArgument, std::to_string(line) + ": " + message};
  }
  void fail(const std::string& message) { fail(line_, message); }

  void check_characters() {
    std::size_t line = 1;
    for (std::size_t i = 0; i < text_.size() && !fault_; ++i) {
      if (text_[i] == '\n') ++line;
      const bool lone_return = text_[i] == '\r' && text_.substr(i, 2) != "\r\n";
      if (is_forbidden(text_[i]) || lone_return) {
        fail(line, "there is a control character");
      }
    }
  }

  void statement() {
    if (now() == '[') return fail("there are no tables, only `key = value`");
    Setting setting;
    setting.line = line_;
    setting.key = key();
    if (fault_) return;
    skip_spaces();
    if (!take("=")) {
      return fail("'" + setting.key + "' has no '=' and value behind it");
    }
    skip_spaces();
    if (take("[")) {
      setting.list = true;
      list(setting.values);
    } else {
      setting.values.push_back(value());
    }
    if (fault_) return;
    skip_spaces();
    skip_comment();
    if (!at_end() && !at_line_end()) {
      return fail("there is more behind the value of '" + setting.key + "'");
    }
    const auto first = std::ranges::find(settings_, setting.key, &Setting::key);
    if (first != settings_.end()) {
      return fail(
          setting.line,
          "'" + setting.key + "' is set in line " +
              std::to_string(first->line) + " already"
      );
    }
    settings_.push_back(std::move(setting));
  }

  std::string key() {
    const std::size_t begin = at_;
    while (!at_end() && is_key_character(now())) ++at_;
    if (at_ == begin) fail("a line must be `key = value`");
    return std::string(text_.substr(begin, at_ - begin));
  }

  void list(std::vector<std::string>& values) {
    for (;;) {
      skip_blank();
      if (take("]")) return;
      if (at_end()) return fail("a list is not closed by ']'");
      values.push_back(value());
      if (fault_) return;
      skip_blank();
      if (take("]")) return;
      if (!take(",")) return fail("values of a list are not parted by ','");
    }
  }

  std::string value() {
    if (now() == '"' || now() == '\'') return string();
    const std::size_t begin = at_;
    constexpr std::string_view kEnds = " \t\r\n,]#";
    while (!at_end() && kEnds.find(now()) == kEnds.npos) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word == "true" || word == "false") return std::string(word);
    std::string found = number(word);
    if (found.empty()) {
      fail(
          "a value must be a string in quotes, a decimal number, true, false "
          "or a list of these"
      );
    }
    return found;
  }

  std::string string() {
    if (take("\"\"\"")) return long_string("\"\"\"", true);
    if (take("'''")) return long_string("'''", false);
    const char quote = now();
    ++at_;
    std::string result;
    while (!at_end() && !at_line_end() && !fault_) {
      if (now() == quote) {
        ++at_;
        return result;
      }
      take_character(quote == '"', result);
    }
    fail("a string is not closed in its line");
    return result;
  }

  std::string long_string(std::string_view quotes, bool escapes) {
    const std::size_t first_line = line_;
    if (at_line_end()) take_line_end();
    std::string result;
    while (!at_end() && !fault_) {
      if (starts(quotes)) {
        // Up to two quotes may stand before the closing three.
        for (int i = 0; i < 2; ++i) {
          if (text_.substr(at_ + 1).starts_with(quotes)) result += text_[at_++];
        }
        at_ += quotes.size();
        return result;
      }
      if (at_line_end()) {
        take_line_end();
        result += '\n';
      } else if (escapes && folds()) {
        ++at_;
        for (skip_spaces(); at_line_end(); skip_spaces()) take_line_end();
      } else {
        take_character(escapes, result);
      }
    }
    fail(first_line, "a string is not closed");
    return result;
  }

  /// A backslash with nothing but spaces behind it in its line.
  bool folds() const {
    if (now() != '\\') return false;
    const std::size_t end = text_.find_first_not_of(" \t", at_ + 1);
    return end != text_.npos && (text_[end] == '\n' || text_[end] == '\r');
  }

  void take_character(bool escapes, std::string& to) {
    const char c = text_[at_++];
    if (c != '\\' || !escapes) {
      to += c;
      return;
    }
    constexpr std::string_view kNames = "btnfr\"\\";
    constexpr std::string_view kMeant = "\b\t\n\f\r\"\\";
    const std::size_t index = at_end() ? kNames.npos : kNames.find(now());
    if (index != kNames.npos) {
      ++at_;
      to += kMeant[index];
    } else if (take("u")) {
      code_point(4, to);
    } else if (take("U")) {
      code_point(8, to);
    } else {
      fail("a string has a backslash that escapes nothing; write \\\\");
    }
  }

  void code_point(int digits, std::string& to) {
    std::uint32_t code = 0;
    for (int i = 0; i < digits; ++i) {
      constexpr std::string_view kHex = "0123456789abcdef";
      const char c = static_cast<char>(now() | (now() >= 'A' ? 0x20 : 0));
      const std::size_t digit = at_end() ? kHex.npos : kHex.find(c);
      if (digit == kHex.npos) {
        return fail("\\u takes 4 hex digits and \\U takes 8");
      }
      code = code << 4 | static_cast<std::uint32_t>(digit);
      ++at_;
    }
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
      return fail("a string escapes what is no character");
    }
    append_utf8(to, code);
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::vector<Setting> settings_;
  std::optional<Error> fault_;
};

}  // namespace

Result<std::vector<Setting>> parse_settings(std::string_view text) {
  return Parser(text).run();
}

std::string setting_value(std::string_view value) {
  const bool bare = value == "true" || value == "false" ||
                    (!value.empty() && number(value) == value);
  if (bare) return std::string(value);
  std::string result = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", byte);
      result += escaped;
    } else {
      result += c;
    }
  }
  return result + '"';
}

}  // namespace afterglow
