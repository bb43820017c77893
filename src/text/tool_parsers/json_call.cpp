#include "text/tool_parsers/json_call.h"

#include "text/tool_parsers/scan.h"

namespace afterglow::tool_parsers {

ToolCalls calls_of_json(std::string_view format, std::string_view text) {
  const auto parsed = parse_json(strip(text));
  return parsed ? calls_of_json(format, *parsed)
                : malformed(format, "it is not JSON");
}

ToolCalls calls_of_json(std::string_view format, const Json& value) {
  std::vector<ToolCall> calls;
  for (const auto& call : value.is_array() ? value : Json::array({value})) {
    const bool named =
        call.is_object() && call.contains("name") && call["name"].is_string();
    if (!named) {
      return malformed(format, "the JSON names no function");
    }
    const bool given = call.contains("arguments");
    calls.push_back(make_call(
        call["name"].get_ref<const std::string&>(),
        given ? call["arguments"] : Json::object()
    ));
    if (call.contains("id") && call["id"].is_string()) {
      calls.back().id = call["id"];
    }
  }
  if (calls.empty()) {
    return malformed(format, "the list is empty");
  }
  return calls;
}

}  // namespace afterglow::tool_parsers
