#include <algorithm>

#include "text/tool_parsers/parsers.h"
#include "text/tool_parsers/scan.h"
#include "text/tool_parsers/typed.h"

namespace afterglow::tool_parsers {
namespace {

/// Bytes of a name in quotes, or bare, at the start; 0 when there is none.
std::size_t name_size(std::string_view text) {
  if (text.starts_with('"') || text.starts_with('\'')) {
    const auto end = text.find(text.front(), 1);
    return end == text.npos ? 0 : end + 1;
  }
  std::size_t size = 0;
  while (size < text.size() && space_size(text.substr(size)) == 0 &&
         std::string_view("\"'<>").find(text[size]) == text.npos) {
    ++size;
  }
  return size;
}

/// A name and the `>` behind it, if they are next; moves `text` behind them.
std::optional<std::string_view> take_name(std::string_view& text) {
  const auto size = name_size(text);
  if (size == 0) {
    return {};
  }
  auto rest = skip_space(text.substr(size));
  if (!take_prefix(rest, ">")) {
    return {};
  }
  const auto name = text.substr(0, size);
  text = rest;
  return unquoted(name);
}

/// Moves past `word` and the white space it needs behind it.
bool take_word(std::string_view& text, std::string_view word) {
  auto rest = text;
  if (!take_prefix(rest, word) || space_size(rest) == 0) {
    return false;
  }
  text = skip_space(rest);
  return true;
}

/// Moves past `name =`.
bool take_name_is(std::string_view& text) {
  auto rest = text;
  if (!take_prefix(rest, "name")) {
    return false;
  }
  rest = skip_space(rest);
  if (!take_prefix(rest, "=")) {
    return false;
  }
  text = skip_space(rest);
  return true;
}

/// The name of the next function; its `<function name=` may be missing, as it
/// is the mark that begins a call.
std::optional<std::string_view> take_function(std::string_view& text) {
  while (!text.empty()) {
    auto rest = text;
    take_word(rest, "<function");
    take_name_is(rest);
    if (const auto name = take_name(rest)) {
      text = rest;
      return name;
    }
    // No name begins inside of white space or of a bare word that is none.
    const bool quoted = text.front() == '"' || text.front() == '\'';
    const auto size = quoted ? 1 : name_size(text) + space_size(text);
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return {};
}

std::string_view value_of(std::string_view text) {
  text = strip(text);
  auto inner = text;
  if (take_prefix(inner, "<![CDATA[") && inner.ends_with("]]>")) {
    inner.remove_suffix(3);
    return inner;
  }
  return text;
}

Json arguments_of(std::string_view body, const Json& properties) {
  Json arguments = Json::object();
  constexpr std::string_view kMark = "<param";
  for (auto at = body.find(kMark); at != body.npos; at = body.find(kMark)) {
    body.remove_prefix(at);
    auto rest = body;
    body.remove_prefix(kMark.size());
    if (!take_word(rest, kMark) || !take_name_is(rest)) {
      continue;
    }
    const auto name = take_name(rest);
    const auto value = name ? take_between(rest, "", "</param>") : std::nullopt;
    if (!value) {
      continue;
    }
    const std::string key(*name);
    arguments[key] = typed_value(value_of(*value), properties, key);
    body = rest;
  }
  return arguments;
}

}  // namespace

/// <function name="f"><param name="p">value</param></function>; values may
/// stand in CDATA. Types come from the schemas.
ToolCalls parse_minicpm5(std::string_view text, const ToolSchemas& schemas) {
  constexpr std::string_view kEnd = "</function>";
  std::vector<ToolCall> calls;
  while (const auto name = take_function(text)) {
    const auto body = text.substr(0, text.find(kEnd));
    text.remove_prefix(std::min(text.size(), body.size() + kEnd.size()));
    calls.push_back(
        make_call(*name, arguments_of(body, schemas.properties(*name)))
    );
  }
  if (calls.empty()) {
    return malformed("minicpm5", "it names no function");
  }
  return calls;
}

}  // namespace afterglow::tool_parsers
