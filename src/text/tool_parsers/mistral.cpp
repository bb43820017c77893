#include "text/tool_parsers/json_call.h"
#include "text/tool_parsers/parsers.h"
#include "text/tool_parsers/scan.h"
#include "text/tool_parsers/value.h"

namespace afterglow::tool_parsers {
namespace {

constexpr std::string_view kFormat = "mistral";

/// [{"name": "f", "arguments": {...}}]; arguments may also be JSON in a text.
ToolCalls parse_list(Json list) {
  for (auto& call : list) {
    if (!call.is_object()) {
      continue;
    }
    const bool given = call.contains("arguments");
    auto& arguments = call["arguments"];
    if (!given) {
      arguments = Json::object();
    }
    if (arguments.is_string()) {
      arguments = parse_json(arguments.get<std::string>()).value_or(Json());
    }
    if (!arguments.is_object()) {
      return malformed(kFormat, "the arguments are not an object");
    }
  }
  return calls_of_json(kFormat, list);
}

/// The name that ends a text, before its last white space.
std::string_view name_at_end(std::string_view text) {
  text = strip_end(text);
  auto begin = text.size();
  while (begin > 0 && (is_word(text[begin - 1]) || text[begin - 1] == '-')) {
    --begin;
  }
  return text.substr(begin);
}

/// f[ARGS]{...}, which may repeat.
ToolCalls parse_headers(std::string_view text) {
  constexpr std::string_view kMark = "[ARGS]";
  std::vector<ToolCall> calls;
  std::size_t from = 0;
  for (auto at = text.find(kMark); at != text.npos;
       at = text.find(kMark, from)) {
    const auto name = name_at_end(text.substr(0, at));
    from = at + kMark.size();
    if (name.empty()) {
      continue;
    }
    const auto rest = skip_space(text.substr(from));
    const auto arguments = parse_json_prefix(rest);
    if (!arguments) {
      return malformed(kFormat, "the arguments are not JSON");
    }
    calls.push_back(make_call(name, arguments->first));
    text = rest.substr(arguments->second);
    from = 0;
  }
  if (calls.empty()) {
    return malformed(kFormat, "there is neither a list nor name[ARGS]");
  }
  return calls;
}

}  // namespace

ToolCalls parse_mistral(std::string_view text, const ToolSchemas&) {
  auto list = parse_json(text);
  if (list && list->is_array() && !list->empty()) {
    return parse_list(*std::move(list));
  }
  return parse_headers(text);
}

}  // namespace afterglow::tool_parsers
