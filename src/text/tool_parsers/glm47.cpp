#include "text/tool_parsers/parsers.h"
#include "text/tool_parsers/scan.h"
#include "text/tool_parsers/shell_words.h"
#include "text/tool_parsers/value.h"

namespace afterglow::tool_parsers {
namespace {

constexpr PairMarks kMarks = {
    "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"};

/// A text's value, unless the schema says that it is a text.
Json value_of(
    std::string_view text, std::string_view key, const Json& properties
) {
  return has_type(properties, key, "string") ? Json(text) : guess_value(text);
}

/// Arguments given as JSON: texts may hold values, and what the schema calls
/// a text becomes one.
ToolCall call_of(
    std::string_view name, const Json& arguments, const ToolSchemas& schemas
) {
  const Json& properties = schemas.properties(name);
  Json out = Json::object();
  for (const auto& [key, value] : arguments.items()) {
    const bool text = has_type(properties, key, "string");
    out[key] = text                ? Json(python_str(value))
               : value.is_string() ? guess_value(value.get<std::string>())
                                   : value;
  }
  return make_call(name, out);
}

Json member(const Json& object, const char* key) {
  return object.is_object() ? object.value(key, Json()) : Json();
}

/// {"name": ..., "arguments": ...}, {"function": ..., "arguments": ...} or
/// {"tool": {"name": ..., "arguments": ...}}, also first in a list.
std::optional<ToolCall> read_json(
    std::string_view text, const ToolSchemas& schemas
) {
  auto parsed = parse_json(strip(text)).value_or(Json());
  if (parsed.is_array() && !parsed.empty() && parsed[0].is_object()) {
    parsed = Json(parsed[0]);
  }
  Json name;
  Json arguments = member(parsed, "arguments");
  if (parsed.contains("arguments") && parsed.contains("name")) {
    name = parsed["name"];
  } else if (parsed.contains("arguments") && parsed.contains("function")) {
    name = parsed["function"];
  } else {
    const Json tool = member(parsed, "tool");
    name = member(tool, "name");
    arguments = member(tool, "arguments");
  }
  if (name.is_object()) {
    arguments = arguments.empty() ? member(name, "arguments") : arguments;
    name = member(name, "name");
  }
  if (arguments.is_string()) {
    arguments = guess_value(arguments.get<std::string>());
  }
  if (!name.is_string() || !(arguments.is_null() || arguments.is_object())) {
    return {};
  }
  return call_of(name.get<std::string>(), arguments, schemas);
}

/// The object that a text is, if it is one.
std::optional<Json> object_in(std::string_view text) {
  auto value = guess_value(text);
  return value.is_object() ? std::optional(std::move(value)) : std::nullopt;
}

/// Arguments as in `city="Paris, France" days=2`; nothing for other text.
std::optional<Json> read_assignments(
    std::string_view text, const Json& properties
) {
  const auto words = shell_words(text);
  if (!words || words->empty()) {
    return {};
  }
  Json arguments = Json::object();
  for (const auto& word : *words) {
    const std::string_view view = word;
    const auto equals = view.find('=');
    const std::string key(strip(view.substr(0, equals)));
    if (equals == view.npos || key.empty()) {
      return {};
    }
    arguments[key] = value_of(view.substr(equals + 1), key, properties);
  }
  return arguments;
}

/// A name, then an object, assignments, or text that is kept as `raw`.
ToolCall read_plain(std::string_view text, const ToolSchemas& schemas) {
  const auto line = text.find('\n');
  if (line != text.npos) {
    if (const auto object = object_in(strip(text.substr(line)))) {
      return call_of(strip(text.substr(0, line)), *object, schemas);
    }
  }
  const auto space = text.find(' ');
  const auto name = text.substr(0, space);
  if (space == text.npos) {
    return make_call(name, Json::object());
  }
  const auto rest = strip(text.substr(space));
  if (const auto object = object_in(rest)) {
    return call_of(name, *object, schemas);
  }
  const auto assigned = read_assignments(rest, schemas.properties(name));
  return make_call(name, assigned ? *assigned : Json{{"raw", rest}});
}

}  // namespace

/// A name, then keys and values in marks of their own; without these, JSON or
/// plain text as these models also write it. Never fails.
ToolCalls parse_glm47(std::string_view text, const ToolSchemas& schemas) {
  const auto end = text.find(kMarks.open_key);
  if (end == text.npos) {
    if (auto call = read_json(text, schemas)) {
      return std::vector{*std::move(call)};
    }
    const auto plain = strip(text);
    return std::vector{
        plain.empty() ? make_call("unknown", Json{{"raw", plain}})
                      : read_plain(plain, schemas)};
  }
  const auto name = strip(text.substr(0, end));
  const Json& properties = schemas.properties(name);
  Json arguments = Json::object();
  while (const auto pair = take_pair(text, kMarks)) {
    const std::string key(strip(pair->first));
    arguments[key] = value_of(strip(pair->second), key, properties);
  }
  return std::vector{make_call(name, arguments)};
}

}  // namespace afterglow::tool_parsers
