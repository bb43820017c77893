#include <cmath>

#include "text/tool_parsers/literal.h"
#include "text/tool_parsers/parsers.h"
#include "text/tool_parsers/scan.h"

namespace afterglow::tool_parsers {
namespace {

constexpr std::string_view kFormat = "qwen3_coder";

/// A name and a `>` behind it, if there is one; moves `text` behind both.
std::string_view take_name(std::string_view& text) {
  text = skip_space(text);
  std::size_t size = 0;
  while (size < text.size() && text[size] != '<' && text[size] != '>' &&
         space_size(text.substr(size)) == 0) {
    ++size;
  }
  const auto name = text.substr(0, size);
  text.remove_prefix(size);
  take_prefix(text, ">");
  return name;
}

template <class... Words>
bool begins_with_any(std::string_view text, Words... words) {
  return (text.starts_with(words) || ...);
}

template <class... Words>
bool is_any(std::string_view text, Words... words) {
  return ((text == words) || ...);
}

/// A parameter's text as its schema's type; nothing for a number that is none.
std::optional<Json> convert(
    std::string_view text, const Json& properties, const std::string& name
) {
  if (lower(text) == "null") {
    return Json(nullptr);
  }
  const auto schema = properties.find(name);
  if (schema == properties.end() || schema->empty()) {
    return Json(text);
  }
  const auto named = schema->is_object() ? schema->find("type") : schema->end();
  if (named == schema->end()) {
    auto value = parse_json(text);
    return value && value->is_structured() ? value : Json(text);
  }
  const std::string type =
      named->is_string() ? lower(strip(named->get<std::string>())) : "";
  if (is_any(type, "string", "str", "text", "varchar", "char", "enum")) {
    return Json(text);
  }
  const bool whole =
      begins_with_any(type, "int", "uint", "long", "short", "unsigned");
  if (whole || begins_with_any(type, "num", "float")) {
    const auto number = python_float(text);
    if (!number || (whole && *number != std::trunc(*number))) {
      return {};
    }
    return whole_if_possible(*number);
  }
  if (is_any(type, "boolean", "bool", "binary")) {
    return Json(lower(text) == "true");
  }
  if (is_any(type, "object", "array", "arr") ||
      begins_with_any(type, "dict", "list")) {
    if (auto value = parse_json_with_controls(text)) {
      return value;
    }
  }
  auto value = python_literal(text);
  return value ? value : Json(text);
}

}  // namespace

/// <function=f><parameter=p>value</parameter></function> at the text's end.
/// Types come from the schemas.
ToolCalls parse_qwen3_coder(std::string_view text, const ToolSchemas& schemas) {
  constexpr std::string_view kEnd = "</function>";
  if (text.ends_with('\n')) {
    text.remove_suffix(1);
  }
  const auto begin = text.find("<function=");
  if (begin == text.npos || !text.substr(begin).ends_with(kEnd)) {
    return malformed(kFormat, "it is no whole <function=...>");
  }
  text.remove_suffix(kEnd.size());
  text.remove_prefix(begin + std::string_view("<function=").size());
  const auto name = take_name(text);
  if (name.empty()) {
    return malformed(kFormat, "it names no function");
  }
  const Json& properties = schemas.properties(name);
  Json arguments = Json::object();
  while (auto value = take_between(text, "<parameter=", "</parameter>")) {
    const std::string key(take_name(*value));
    if (key.empty()) {
      continue;
    }
    take_prefix(*value, "\n");
    if (value->ends_with('\n')) {
      value->remove_suffix(1);
    }
    auto converted = convert(*value, properties, key);
    if (!converted) {
      return malformed(kFormat, "argument " + key + " is not such a number");
    }
    arguments[key] = *std::move(converted);
  }
  return std::vector{make_call(name, arguments)};
}

}  // namespace afterglow::tool_parsers
