#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "text/tool_calls.h"

/// Values as models write them. JSON here is RFC 8259: NaN and Infinity, which
/// Python reads, are none; nesting is limited to kDeepest.
namespace afterglow::tool_parsers {

using Json = nlohmann::ordered_json;

inline constexpr std::size_t kDeepest = 200;

/// A text that is one JSON value, or nothing.
std::optional<Json> parse_json(std::string_view text);

/// The same, but control characters may stand in strings as they are.
std::optional<Json> parse_json_with_controls(std::string_view text);

/// The JSON value that a text begins with, and its size in bytes.
std::optional<std::pair<Json, std::size_t>> parse_json_prefix(
    std::string_view text
);

/// A text as JSON, else as a Python literal, else the string itself.
Json guess_value(std::string_view text);

/// What Python's str() gives for the value.
std::string python_str(const Json& value);

/// JSON text in Python's spacing, characters beyond ASCII as they are.
std::string dump(const Json& value);

ToolCall make_call(std::string_view name, const Json& arguments);

/// Whether a parameter's schema names this one type.
bool has_type(
    const Json& properties, std::string_view parameter, std::string_view type
);

}  // namespace afterglow::tool_parsers
