#pragma once

#include <string_view>

#include "text/tool_parsers/value.h"

namespace afterglow::tool_parsers {

/// A parameter's text as the most specific of the types that its schema
/// allows, by `type`, `enum`, `anyOf`, `oneOf` and `allOf`: integer, number,
/// boolean, object or array, string. A parameter without a schema is a text.
/// "null" is null for any type.
Json typed_value(
    std::string_view text, const Json& properties, std::string_view parameter
);

}  // namespace afterglow::tool_parsers
