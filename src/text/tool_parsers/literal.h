#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "text/tool_parsers/value.h"

/// Python's literals, as far as they have a JSON value: numbers but complex
/// ones, texts but bytes, True, False, None, lists, tuples, dicts.
/// Source: https://docs.python.org/3/reference/lexical_analysis.html
namespace afterglow::tool_parsers {

/// A text that is one literal, as Python's ast.literal_eval reads it (a bare
/// `1, 2` is a tuple), or nothing. Tuples become arrays, keys texts.
std::optional<Json> python_literal(std::string_view text);

/// What Python's int() reads, or nothing.
std::optional<Json> python_int(std::string_view text);

/// What Python's float() reads, but neither infinity nor NaN.
std::optional<double> python_float(std::string_view text);

/// A number without a fraction as an integer, another as it is.
Json whole_if_possible(double number);

/// Reads Python source piece by piece. Each function returns nothing, or
/// false, where the text is something else; the position is then undefined.
class PythonReader {
 public:
  /// With `json_names`, true, false and null are also values.
  PythonReader(std::string_view text, bool json_names)
      : text_(text), json_names_(json_names) {}

  std::optional<Json> value();
  /// Skips white space, inside brackets also line ends and comments.
  void skip();
  /// Skips white space, then takes the character if it is there.
  bool take(char c);
  bool peek(char c);
  /// A name; with `dots`, names joined by dots.
  std::optional<std::string> name(bool dots);
  /// Whether only white space and comments are left.
  bool at_end() const;
  /// While brackets are open, line ends are white space.
  void open() { ++depth_; }
  void close() { --depth_; }

 private:
  std::optional<Json> sequence(char closing);
  std::optional<Json> dict();
  std::optional<Json> number();
  std::optional<Json> word();
  std::optional<Json> strings();
  bool at_string() const;
  bool string_into(std::string& out);
  bool escape_into(std::string& out);
  std::optional<char32_t> code_point(std::size_t digits);
  std::string_view rest() const { return text_.substr(at_); }

  std::string_view text_;
  bool json_names_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
};

}  // namespace afterglow::tool_parsers
