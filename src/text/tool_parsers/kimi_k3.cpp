#include <map>

#include "text/tool_parsers/parsers.h"
#include "text/tool_parsers/scan.h"
#include "text/tool_parsers/value.h"

namespace afterglow::tool_parsers {
namespace {

constexpr std::string_view kFormat = "kimi_k3";
constexpr std::string_view kSep = "<|sep|>";

struct Element {
  std::string_view attributes, body;
};

/// The next <|open|>tag ...<|sep|> ... <|close|>tag<|sep|>; moves `text`
/// behind it.
std::optional<Element> take_element(
    std::string_view& text, std::string_view tag
) {
  const std::string open = "<|open|>" + std::string(tag);
  const std::string close = "<|close|>" + std::string(tag) + "<|sep|>";
  auto rest = text;
  const auto attributes = take_between(rest, open, kSep);
  const auto end = rest.find(close);
  if (!attributes || end == rest.npos) {
    return {};
  }
  text = rest.substr(end + close.size());
  return Element{*attributes, rest.substr(0, end)};
}

std::string replaced(
    std::string text, std::string_view what, std::string_view by
) {
  for (auto at = text.find(what); at != text.npos;
       at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

/// Attributes key="value"; of two with one key the last counts.
std::map<std::string, std::string, std::less<>> attributes_of(
    std::string_view text
) {
  std::map<std::string, std::string, std::less<>> found;
  constexpr std::string_view kOpen = "=\"";
  for (auto at = text.find(kOpen); at != text.npos; at = text.find(kOpen)) {
    auto begin = at;
    while (begin > 0 && is_word(text[begin - 1])) {
      --begin;
    }
    const auto key = text.substr(begin, at - begin);
    text.remove_prefix(at + kOpen.size());
    const auto end = text.find('"');
    if (key.empty() || end == text.npos) {
      continue;
    }
    found[std::string(key)] = replaced(
        replaced(std::string(text.substr(0, end)), "&quot;", "\""), "&amp;", "&"
    );
    text.remove_prefix(end + 1);
  }
  return found;
}

/// One call, or nothing when it is broken.
std::optional<ToolCall> parse_one(const Element& call) {
  const auto attributes = attributes_of(call.attributes);
  const auto name = attributes.find("tool");
  if (name == attributes.end() || name->second.empty()) {
    return {};
  }
  auto body = call.body;
  if (const auto json = take_element(body, "json")) {
    const auto arguments = parse_json(json->body);
    return arguments && arguments->is_object()
               ? std::optional(make_call(name->second, *arguments))
               : std::nullopt;
  }
  Json arguments = Json::object();
  while (const auto argument = take_element(body, "argument")) {
    const auto given = attributes_of(argument->attributes);
    const auto key = given.find("key");
    if (key == given.end()) {
      return {};
    }
    const auto type = given.find("type");
    const bool text = type == given.end() || type->second == "string";
    auto parsed = text ? std::nullopt : parse_json(argument->body);
    arguments[key->second] = parsed ? *std::move(parsed) : Json(argument->body);
  }
  return make_call(name->second, arguments);
}

}  // namespace

/// Elements `call` with typed elements `argument`, or one element `json`.
/// Broken calls beside a good one are left out.
ToolCalls parse_kimi_k3(std::string_view text, const ToolSchemas&) {
  std::vector<ToolCall> calls;
  while (const auto element = take_element(text, "call")) {
    if (auto call = parse_one(*element)) {
      calls.push_back(*std::move(call));
    }
  }
  if (calls.empty()) {
    return malformed(kFormat, "there is no whole call");
  }
  return calls;
}

}  // namespace afterglow::tool_parsers
