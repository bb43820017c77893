#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tool_calls.h"

/// One parser for each format in the table of tool_calls.cpp; they all keep
/// ToolCallFormat::parse's promise.
namespace afterglow::tool_parsers {

using ToolCalls = Result<std::vector<ToolCall>>;

ToolCalls parse_function_gemma(std::string_view text, const ToolSchemas&);
ToolCalls parse_gemma4(std::string_view text, const ToolSchemas&);
ToolCalls parse_glm47(std::string_view text, const ToolSchemas&);
ToolCalls parse_json_tools(std::string_view text, const ToolSchemas&);
ToolCalls parse_kimi_k2(std::string_view text, const ToolSchemas&);
ToolCalls parse_kimi_k3(std::string_view text, const ToolSchemas&);
ToolCalls parse_longcat(std::string_view text, const ToolSchemas&);
ToolCalls parse_minicpm5(std::string_view text, const ToolSchemas&);
ToolCalls parse_minimax_m2(std::string_view text, const ToolSchemas&);
ToolCalls parse_mistral(std::string_view text, const ToolSchemas&);
ToolCalls parse_muse_spark(std::string_view text, const ToolSchemas&);
ToolCalls parse_pythonic(std::string_view text, const ToolSchemas&);
ToolCalls parse_qwen3_coder(std::string_view text, const ToolSchemas&);

/// The error of text that is no call of a format.
inline Error malformed(std::string_view format, std::string_view why) {
  return {
      Code::kCorrupt,
      "[text.tool_call] the model's " + std::string(format) +
          " call cannot be read: " + std::string(why)};
}

}  // namespace afterglow::tool_parsers
