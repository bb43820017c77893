#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace afterglow {

/// A function the model wants called.
struct ToolCall {
  std::string id;  // the model's own name for the call; mostly empty
  std::string name;
  /// JSON text with ", " and ": " between members, as templates write it. An
  /// object, but in formats that hold JSON the model may have given another
  /// value. Numbers are JSON's: integers beyond 64 bits become floating point.
  std::string arguments;

  bool operator==(const ToolCall&) const = default;
};

/// The parameters' schemas of the functions a request offers, by which formats
/// without types of their own tell numbers from strings.
/// Thread: const methods are safe from many threads at once.
class ToolSchemas {
 public:
  /// No functions: every argument's type is guessed as its format says.
  ToolSchemas();

  /// Reads the `tools` of a chat request. Of functions with one name the first
  /// counts; entries without a function or without parameters say nothing.
  /// Errors: kInvalidArgument for text that is not a JSON array.
  static Result<ToolSchemas> parse(std::string_view tools_json);

  /// The schemas of a function's parameters by name, an object; empty when the
  /// function is unknown or tells none. Valid while this or a copy lives.
  const nlohmann::ordered_json& properties(std::string_view function) const;

 private:
  std::shared_ptr<const nlohmann::ordered_json> functions_;
};

/// How one family of models writes tool calls.
struct ToolCallFormat {
  std::string_view name;   // mlx_lm's `tool_parser_type`
  std::string_view start;  // ends text and begins a call
  std::string_view end;    // ends a call; empty: only the answer's end does

  /// The calls in the text between the marks, at least one, in order. Whether
  /// a function of that name was offered is not looked at.
  /// Errors: kCorrupt for text that holds no call or a broken one.
  Result<std::vector<ToolCall>> (*parse
  )(std::string_view text, const ToolSchemas& schemas);
};

/// All formats. They accept, type and refuse what mlx_lm 0.32.2's parsers do,
/// but for this: where those stop a whole answer by a stray exception or give
/// what is no JSON, a format here refuses the call or keeps the text as a
/// string; an empty list of calls is an error; every character beyond ASCII
/// may be part of a name; in Python's notation, reserved words may be names.
std::span<const ToolCallFormat> tool_call_formats();

/// The format of that name, or null.
const ToolCallFormat* find_tool_call_format(std::string_view name);

}  // namespace afterglow
