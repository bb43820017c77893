#include "text/tool_parsers/parsers.h"
#include "text/tool_parsers/scan.h"
#include "text/tool_parsers/typed.h"

namespace afterglow::tool_parsers {

/// <invoke name="f"><parameter name="p">value</parameter></invoke>, which may
/// repeat. Types come from the schemas.
ToolCalls parse_minimax_m2(std::string_view text, const ToolSchemas& schemas) {
  std::vector<ToolCall> calls;
  while (auto invoke = take_between(text, "<invoke name=", "</invoke>")) {
    const auto head = invoke->substr(0, invoke->find('>'));
    if (head.empty()) {
      continue;
    }
    const auto name = unquoted(head);
    const Json& properties = schemas.properties(name);
    Json arguments = Json::object();
    while (const auto parameter =
               take_between(*invoke, "<parameter name=", "</parameter>")) {
      const auto end = parameter->find('>');
      if (end == 0 || end == parameter->npos) {
        continue;
      }
      const std::string key(unquoted(parameter->substr(0, end)));
      arguments[key] =
          typed_value(strip(parameter->substr(end + 1)), properties, key);
    }
    calls.push_back(make_call(name, arguments));
  }
  if (calls.empty()) {
    return malformed("minimax_m2", "there is no whole <invoke name=...>");
  }
  return calls;
}

}  // namespace afterglow::tool_parsers
