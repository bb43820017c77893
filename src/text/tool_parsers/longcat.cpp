#include "text/tool_parsers/json_call.h"
#include "text/tool_parsers/parsers.h"
#include "text/tool_parsers/scan.h"
#include "text/tool_parsers/value.h"

namespace afterglow::tool_parsers {
namespace {

constexpr std::string_view kFormat = "longcat";
constexpr PairMarks kMarks = {
    "<longcat_arg_key>",
    "</longcat_arg_key>",
    "<longcat_arg_value>",
    "</longcat_arg_value>"};

}  // namespace

/// A name, then keys and values in marks of their own; or a JSON object.
ToolCalls parse_longcat(std::string_view text, const ToolSchemas& schemas) {
  text = strip(text);
  if (text.starts_with('{') && parse_json(text)) {
    return calls_of_json(kFormat, text);
  }
  const auto end = text.find(kMarks.open_key);
  if (end == text.npos) {
    return malformed(kFormat, "it has no arguments");
  }
  const auto name = strip(text.substr(0, end));
  const Json& properties = schemas.properties(name);
  Json arguments = Json::object();
  while (const auto pair = take_pair(text, kMarks)) {
    const std::string key(strip(pair->first));
    const auto value = strip(pair->second);
    arguments[key] =
        has_type(properties, key, "string") ? Json(value) : guess_value(value);
  }
  return std::vector{make_call(name, arguments)};
}

}  // namespace afterglow::tool_parsers
