#include <algorithm>

#include "text/tool_parsers/parsers.h"
#include "text/tool_parsers/scan.h"
#include "text/tool_parsers/value.h"

namespace afterglow::tool_parsers {
namespace {

constexpr std::string_view kFormat = "function_gemma";
constexpr std::string_view kEscape = "<escape>";

struct Call {
  std::string_view name, arguments;
};

/// The first `call:name{arguments}`; a brace in an argument ends it.
std::optional<Call> find_call(std::string_view text) {
  constexpr std::string_view kMark = "call:";
  for (auto at = text.find(kMark); at != text.npos;
       at = text.find(kMark, at + 1)) {
    auto rest = text.substr(at + kMark.size());
    const auto name = rest.substr(0, word_size(rest));
    rest.remove_prefix(name.size());
    if (name.empty() || !take_prefix(rest, "{")) {
      continue;
    }
    const auto end = rest.find('}');
    if (end != rest.npos) {
      return Call{name, rest.substr(0, end)};
    }
  }
  return {};
}

/// Bytes of the character at the start.
std::size_t character_size(std::string_view text) {
  std::size_t size = text.empty() ? 0 : 1;
  while (size < text.size() && (text[size] & 0xc0) == 0x80) {
    ++size;
  }
  return size;
}

}  // namespace

/// call:f{number:1,text:<escape>a, b<escape>}
ToolCalls parse_function_gemma(std::string_view text, const ToolSchemas&) {
  const auto call = find_call(text);
  if (!call) {
    return malformed(kFormat, "there is no call:name{...}");
  }
  Json arguments = Json::object();
  auto rest = call->arguments;
  while (!rest.empty()) {
    const auto colon = rest.find(':');
    if (colon == rest.npos) {
      return malformed(kFormat, "an argument has no value");
    }
    const std::string key(rest.substr(0, colon));
    rest.remove_prefix(colon + 1);
    if (take_prefix(rest, kEscape)) {
      const auto end = rest.find(kEscape);
      if (end == rest.npos) {
        return malformed(kFormat, "a text has no end");
      }
      arguments[key] = rest.substr(0, end);
      rest.remove_prefix(end + kEscape.size());
      rest.remove_prefix(character_size(rest));
      continue;
    }
    const auto value = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), value.size() + 1));
    auto parsed = parse_json(value);
    arguments[key] = parsed ? *std::move(parsed) : Json(value);
  }
  return std::vector{make_call(call->name, arguments)};
}

}  // namespace afterglow::tool_parsers
