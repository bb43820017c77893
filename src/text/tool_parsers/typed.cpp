#include "text/tool_parsers/typed.h"

#include <optional>
#include <set>
#include <string>

#include "text/tool_parsers/literal.h"
#include "text/tool_parsers/scan.h"

namespace afterglow::tool_parsers {
namespace {

using Types = std::set<std::string, std::less<>>;

const char* type_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::boolean:
      return "boolean";
    case Json::value_t::number_float:
      return "number";
    case Json::value_t::string:
      return "string";
    case Json::value_t::array:
      return "array";
    case Json::value_t::object:
      return "object";
    default:
      return "integer";
  }
}

bool joins_schemas(std::string_view key) {
  return key == "anyOf" || key == "oneOf" || key == "allOf";
}

void add_types(const Json& schema, Types& types) {
  if (!schema.is_object()) {
    types.insert("string");
    return;
  }
  Types found;
  for (const auto& [key, value] : schema.items()) {
    if (key == "type" && value.is_string()) {
      found.insert(lower(value.get<std::string>()));
    } else if (key == "type" && value.is_array()) {
      for (const auto& type : value) {
        if (type.is_string()) {
          found.insert(lower(type.get<std::string>()));
        }
      }
    } else if (key == "enum" && value.is_array()) {
      for (const auto& choice : value) {
        found.insert(type_of(choice));
      }
    } else if (joins_schemas(key) && value.is_array()) {
      for (const auto& choice : value) {
        add_types(choice, found);
      }
    }
  }
  if (found.empty()) {
    found.insert("string");
  }
  types.merge(found);
}

std::optional<Json> boolean(std::string_view text) {
  const std::string word = lower(strip(text));
  if (word == "true" || word == "1" || word == "yes" || word == "on") {
    return Json(true);
  }
  if (word == "false" || word == "0" || word == "no" || word == "off") {
    return Json(false);
  }
  return {};
}

std::optional<Json> as_types(std::string_view text, const Types& types) {
  const auto any = [&](auto... names) {
    return (types.contains(names) || ...);
  };
  if (any("integer", "int")) {
    if (auto value = python_int(text)) {
      return value;
    }
  }
  if (any("number", "float")) {
    if (const auto value = python_float(text)) {
      return whole_if_possible(*value);
    }
  }
  if (any("boolean", "bool")) {
    if (auto value = boolean(text)) {
      return value;
    }
  }
  if (any("object", "array")) {
    if (auto value = parse_json_with_controls(text)) {
      return value;
    }
    if (auto value = python_literal(text)) {
      return value;
    }
  }
  return any("string", "str", "text") ? std::optional<Json>(text)
                                      : std::nullopt;
}

}  // namespace

Json typed_value(
    std::string_view text, const Json& properties, std::string_view parameter
) {
  const std::string word = lower(text);
  if (word == "null") {
    return nullptr;
  }
  Types types;
  const auto schema = properties.find(std::string(parameter));
  add_types(schema == properties.end() ? Json() : *schema, types);
  if (types.contains("null") && (word == "none" || word == "nil")) {
    return nullptr;
  }
  if (auto value = as_types(text, types)) {
    return *std::move(value);
  }
  if (auto value = parse_json(text)) {
    return *std::move(value);
  }
  return text;
}

}  // namespace afterglow::tool_parsers
