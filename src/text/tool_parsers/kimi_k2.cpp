#include "text/tool_parsers/parsers.h"
#include "text/tool_parsers/scan.h"
#include "text/tool_parsers/value.h"

namespace afterglow::tool_parsers {
namespace {

constexpr std::string_view kFormat = "kimi_k2";
constexpr std::string_view kBegin = "<|tool_call_begin|>";
constexpr std::string_view kArguments = "<|tool_call_argument_begin|>";
constexpr std::string_view kEnd = "<|tool_call_end|>";

/// The name in an id such as "functions.add:0"; empty when it is no id.
std::string_view name_in(std::string_view id) {
  auto name = id;
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') {
    name.remove_suffix(1);
  }
  if (name.size() == id.size() || !name.ends_with(':')) {
    return {};
  }
  name.remove_suffix(1);
  auto bare = name;
  return take_prefix(bare, "functions.") && !bare.empty() ? bare : name;
}

ToolCalls parse_one(std::string_view text) {
  const auto first = text.find(kArguments);
  for (auto at = first; at != text.npos; at = text.find(kArguments, at + 1)) {
    const auto id = strip(text.substr(0, at));
    const auto name = name_in(id);
    if (name.empty()) {
      continue;
    }
    const auto arguments = skip_space(text.substr(first + kArguments.size()));
    auto call = make_call(name, guess_value(arguments));
    call.id = id;
    return std::vector{std::move(call)};
  }
  return malformed(kFormat, "there is no name:number before the arguments");
}

}  // namespace

/// functions.f:0<|tool_call_argument_begin|>{...}, each between marks.
ToolCalls parse_kimi_k2(std::string_view text, const ToolSchemas&) {
  std::vector<ToolCall> calls;
  const auto whole = text;
  while (const auto one = take_between(text, kBegin, kEnd)) {
    auto parsed = parse_one(*one);
    if (!parsed) {
      return parsed;
    }
    calls.push_back(parsed->front());
  }
  return calls.empty() ? parse_one(whole) : ToolCalls(std::move(calls));
}

}  // namespace afterglow::tool_parsers
