#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "server/api_error.h"

namespace afterglow {

struct JsonLimits {
  std::size_t depth = 64;        // of objects and arrays in each other
  std::size_t values = 1 << 20;  // objects, arrays, keys and scalars
};

/// Parses a request body: one JSON value (RFC 8259) in UTF-8, members in
/// their order. Cost and memory grow with the body's length only.
/// Errors: kInvalidArgument, with the place, for a syntax error, invalid
/// UTF-8, a number out of range, a member named twice, or a limit exceeded.
Result<nlohmann::ordered_json> parse_json_body(
    std::string_view text, const JsonLimits& limits = {}
);

/// Whether a body may be left out: nothing, blanks and null then stand for an
/// empty object.
enum class BodyIs { kRequired, kOptional };

/// The same for a body that must be an object; the error is the client's.
std::variant<nlohmann::ordered_json, ApiError> parse_json_object(
    std::string_view text,
    const JsonLimits& limits = {},
    BodyIs body = BodyIs::kRequired
);

}  // namespace afterglow
