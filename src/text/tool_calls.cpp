#include "text/tool_calls.h"

#include <algorithm>
#include <array>

#include "text/tool_parsers/parsers.h"
#include "text/tool_parsers/value.h"

namespace afterglow {
namespace {

using namespace tool_parsers;

constexpr std::array kFormats = {
    ToolCallFormat{
        "function_gemma",
        "<start_function_call>",
        "<end_function_call>",
        parse_function_gemma},
    ToolCallFormat{"gemma4", "<|tool_call>", "<tool_call|>", parse_gemma4},
    ToolCallFormat{"glm47", "<tool_call>", "</tool_call>", parse_glm47},
    ToolCallFormat{
        "json_tools", "<tool_call>", "</tool_call>", parse_json_tools},
    ToolCallFormat{
        "kimi_k2",
        "<|tool_calls_section_begin|>",
        "<|tool_calls_section_end|>",
        parse_kimi_k2},
    ToolCallFormat{
        "kimi_k3",
        "<|open|>tools<|sep|>",
        "<|close|>tools<|sep|>",
        parse_kimi_k3},
    ToolCallFormat{"laguna", "<tool_call>", "</tool_call>", parse_glm47},
    ToolCallFormat{
        "longcat",
        "<longcat_tool_call>",
        "</longcat_tool_call>",
        parse_longcat},
    ToolCallFormat{
        "minicpm5", "<function name=", "</function>", parse_minicpm5},
    ToolCallFormat{
        "minimax_m2",
        "<minimax:tool_call>",
        "</minimax:tool_call>",
        parse_minimax_m2},
    ToolCallFormat{"mistral", "[TOOL_CALLS]", "", parse_mistral},
    ToolCallFormat{
        "muse_spark",
        "<atem:function_calls>",
        "</atem:function_calls>",
        parse_muse_spark},
    ToolCallFormat{
        "pythonic", "<|tool_call_start|>", "<|tool_call_end|>", parse_pythonic},
    ToolCallFormat{
        "qwen3_coder", "<tool_call>", "</tool_call>", parse_qwen3_coder},
};

/// A member of an object, or null.
const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) {
    return nullptr;
  }
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

}  // namespace

ToolSchemas::ToolSchemas()
    : functions_(std::make_shared<const Json>(Json::object())) {}

Result<ToolSchemas> ToolSchemas::parse(std::string_view tools_json) {
  const auto tools = parse_json(tools_json);
  if (!tools || !tools->is_array()) {
    return Error{
        Code::kInvalidArgument,
        "[text.tool_schemas] tools: not a JSON array of functions"};
  }
  Json functions = Json::object();
  for (const auto& tool : *tools) {
    const Json* function = member(tool, "function");
    const Json* name = function ? member(*function, "name") : nullptr;
    if (name == nullptr || !name->is_string() || functions.contains(*name)) {
      continue;
    }
    const Json* parameters = member(*function, "parameters");
    const Json* known =
        parameters ? member(*parameters, "properties") : nullptr;
    functions[name->get<std::string>()] =
        known && known->is_object() ? *known : Json::object();
  }
  ToolSchemas schemas;
  schemas.functions_ = std::make_shared<const Json>(std::move(functions));
  return schemas;
}

const Json& ToolSchemas::properties(std::string_view function) const {
  static const Json none = Json::object();
  const auto found = functions_->find(std::string(function));
  return found == functions_->end() ? none : *found;
}

std::span<const ToolCallFormat> tool_call_formats() {
  return kFormats;
}

const ToolCallFormat* find_tool_call_format(std::string_view name) {
  const auto* found = std::ranges::find(kFormats, name, &ToolCallFormat::name);
  return found == kFormats.end() ? nullptr : found;
}

}  // namespace afterglow
