#include "text/tool_parsers/json_call.h"
#include "text/tool_parsers/parsers.h"
#include "text/tool_parsers/value.h"

namespace afterglow::tool_parsers {

/// {"name": "f", "arguments": {...}}, or a list of such objects.
ToolCalls parse_json_tools(std::string_view text, const ToolSchemas&) {
  return calls_of_json("json_tools", text);
}

}  // namespace afterglow::tool_parsers
