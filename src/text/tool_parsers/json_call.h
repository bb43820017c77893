#pragma once

#include <string_view>

#include "text/tool_parsers/parsers.h"
#include "text/tool_parsers/value.h"

namespace afterglow::tool_parsers {

/// The calls of {"name": "f", "arguments": {...}} or of a list of such
/// objects, as they are. Without arguments a function gets none.
ToolCalls calls_of_json(std::string_view format, std::string_view text);
ToolCalls calls_of_json(std::string_view format, const Json& value);

}  // namespace afterglow::tool_parsers
