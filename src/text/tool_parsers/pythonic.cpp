#include <algorithm>

#include "text/tool_parsers/literal.h"
#include "text/tool_parsers/parsers.h"
#include "text/tool_parsers/scan.h"

namespace afterglow::tool_parsers {
namespace {

/// One f(a=1, b="x"); nothing for other text, positional arguments included.
std::optional<ToolCall> read_call(PythonReader& reader) {
  const auto name = reader.name(true);
  if (!name || !reader.take('(')) {
    return {};
  }
  reader.open();
  Json arguments = Json::object();
  bool more = true;
  while (!reader.take(')')) {
    const auto key = more ? reader.name(false) : std::nullopt;
    if (!key || !reader.take('=')) {
      return {};
    }
    auto value = reader.value();
    if (!value) {
      return {};
    }
    arguments[*key] = *std::move(value);
    more = reader.take(',');
  }
  reader.close();
  return make_call(*name, arguments);
}

/// A Python list of calls; empty when the text is none.
std::vector<ToolCall> read_list(std::string_view text) {
  const auto begin = text.find('[');
  const auto end = text.rfind(']');
  if (begin == text.npos || end == text.npos || end <= begin) {
    return {};
  }
  PythonReader reader(text.substr(begin, end + 1 - begin), true);
  reader.take('[');
  reader.open();
  std::vector<ToolCall> calls;
  bool more = true;
  while (!reader.take(']')) {
    auto call = more ? read_call(reader) : std::nullopt;
    if (!call) {
      return {};
    }
    calls.push_back(*std::move(call));
    more = reader.take(',');
  }
  reader.close();
  return reader.at_end() ? calls : std::vector<ToolCall>{};
}

/// One `text` up to a comma or the end behind it, in the given quotes.
std::optional<std::string_view> take_quoted(
    std::string_view& text, char quote
) {
  if (!text.starts_with(quote)) {
    return {};
  }
  const auto end = text.find(quote, 1);
  if (end == text.npos) {
    return {};
  }
  auto rest = text.substr(end + 1);
  if (!take_prefix(rest, ",") && !rest.empty() && rest != "\n") {
    return {};
  }
  const auto value = text.substr(1, end - 1);
  text = rest;
  return value;
}

/// The arguments key=value of text that is not quite Python.
Json guess_arguments(std::string_view text) {
  Json arguments = Json::object();
  while (!text.empty()) {
    const auto key = text.substr(0, word_size(text));
    auto rest = text.substr(key.size());
    if (key.empty() || !take_prefix(rest, "=")) {
      text.remove_prefix(std::max<std::size_t>(key.size(), 1));
      continue;
    }
    auto value = take_quoted(rest, '"');
    if (!value) {
      value = take_quoted(rest, '\'');
    }
    if (!value) {
      const auto bare = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), bare.size() + 1));
      if (bare.empty()) {
        text = rest;
        continue;
      }
      value = strip(bare);
    }
    auto literal = python_literal(*value);
    arguments[std::string(key)] = literal ? *std::move(literal) : Json(*value);
    text = rest;
  }
  return arguments;
}

/// The first [f(...)], whatever is inside.
std::optional<ToolCall> guess_call(std::string_view text) {
  for (auto at = text.find('['); at != text.npos; at = text.find('[', at + 1)) {
    auto rest = text.substr(at + 1);
    const auto name = rest.substr(0, word_size(rest, "."));
    rest.remove_prefix(name.size());
    if (name.empty() || !take_prefix(rest, "(")) {
      continue;
    }
    const auto end = rest.find(")]");
    if (end == rest.npos) {
      return {};
    }
    return make_call(name, guess_arguments(rest.substr(0, end)));
  }
  return {};
}

}  // namespace

/// [f(a=1), g(b="x")] in Python's notation, where true, false and null are
/// also known. Unlike in Python, an argument's name may be a reserved word.
ToolCalls parse_pythonic(std::string_view text, const ToolSchemas&) {
  auto calls = read_list(text);
  if (calls.empty()) {
    if (auto call = guess_call(text)) {
      calls.push_back(*std::move(call));
    }
  }
  if (calls.empty()) {
    return malformed("pythonic", "there is no [name(...)]");
  }
  return calls;
}

}  // namespace afterglow::tool_parsers
