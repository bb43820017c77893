#include <algorithm>

#include "text/tool_parsers/parsers.h"
#include "text/tool_parsers/scan.h"
#include "text/tool_parsers/value.h"

namespace afterglow::tool_parsers {
namespace {

constexpr std::string_view kInvoke = "<atem:invoke";
constexpr std::string_view kInvokeEnd = "</atem:invoke>";
constexpr std::string_view kParameter = "<atem:parameter";
constexpr std::string_view kParameterEnd = "</atem:parameter>";

/// The name in ` ... name="f">`, which follows a tag's word, if it is next;
/// moves `text` behind the tag. Other attributes may stand before the name,
/// and `after` it too if so told.
std::optional<std::string_view> take_tag(std::string_view& text, bool after) {
  constexpr std::string_view kName = "name=\"";
  if (!text.empty() && is_word(text.front())) {
    return {};
  }
  const auto end = text.find('>');
  for (auto at = text.find(kName); at < end; at = text.find(kName, at + 1)) {
    const auto begin = at + kName.size();
    const auto quote = text.find('"', begin);
    const bool word = at > 0 && is_word(text[at - 1]);
    if (word || quote == text.npos || quote == begin) {
      continue;
    }
    const auto close = after ? text.find('>', quote) : quote + 1;
    if (close < text.size() && text[close] == '>') {
      const auto name = text.substr(begin, quote - begin);
      text.remove_prefix(close + 1);
      return name;
    }
  }
  return {};
}

/// What an invocation holds, up to its end outside of parameters or the end
/// of the text; moves `text` behind it.
std::string_view take_body(std::string_view& text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto rest = text.substr(at);
    if (rest.starts_with(kInvokeEnd)) {
      break;
    }
    const auto behind = at + kParameter.size();
    const bool parameter = rest.starts_with(kParameter) &&
                           !(behind < text.size() && is_word(text[behind]));
    const auto end = parameter ? text.find(kParameterEnd, behind) : text.npos;
    at = end == text.npos ? at + 1 : end + kParameterEnd.size();
  }
  const auto body = text.substr(0, at);
  text.remove_prefix(std::min(text.size(), at + kInvokeEnd.size()));
  return body;
}

Json arguments_of(std::string_view body) {
  Json arguments = Json::object();
  for (auto at = body.find(kParameter); at != body.npos;
       at = body.find(kParameter)) {
    body.remove_prefix(at + kParameter.size());
    auto rest = body;
    const auto name = take_tag(rest, true);
    const auto value =
        name ? take_between(rest, "", kParameterEnd) : std::nullopt;
    if (!value) {
      continue;
    }
    auto parsed = parse_json(*value);
    arguments[std::string(*name)] =
        parsed ? *std::move(parsed) : Json(strip(*value));
    body = rest;
  }
  return arguments;
}

}  // namespace

/// <atem:invoke name="f"><atem:parameter name="p">1</atem:parameter>
/// </atem:invoke>, which may repeat; values are JSON, else texts.
ToolCalls parse_muse_spark(std::string_view text, const ToolSchemas&) {
  std::vector<ToolCall> calls;
  for (auto at = text.find(kInvoke); at != text.npos; at = text.find(kInvoke)) {
    text.remove_prefix(at + kInvoke.size());
    auto rest = text;
    if (const auto name = take_tag(rest, false)) {
      calls.push_back(make_call(*name, arguments_of(take_body(rest))));
      text = rest;
    }
  }
  if (calls.empty()) {
    return malformed("muse_spark", "there is no <atem:invoke name=...>");
  }
  return calls;
}

}  // namespace afterglow::tool_parsers
