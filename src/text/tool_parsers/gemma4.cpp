#include <algorithm>

#include "text/tool_parsers/parsers.h"
#include "text/tool_parsers/scan.h"
#include "text/tool_parsers/value.h"

namespace afterglow::tool_parsers {
namespace {

constexpr std::string_view kFormat = "gemma4";
constexpr std::string_view kQuote = "<|\"|>";

/// Bytes of the text in `quotes` at the start, with both; 0 when it has no end.
std::size_t quoted_size(std::string_view text) {
  const auto end = text.find(kQuote, kQuote.size());
  return end == text.npos ? 0 : end + kQuote.size();
}

/// For the place of each brace that is closed, the place behind the brace that
/// closes it; 0 for all other places. Braces in texts don't count, and no brace
/// holds a text without an end.
std::vector<std::size_t> brace_ends(std::string_view text) {
  std::vector<std::size_t> ends(text.size(), 0);
  std::vector<std::size_t> open;
  std::size_t at = 0;
  while (at < text.size()) {
    if (text.substr(at).starts_with(kQuote)) {
      const auto size = quoted_size(text.substr(at));
      if (size == 0) {
        open.clear();
      }
      at += std::max(size, kQuote.size());
      continue;
    }
    if (text[at] == '{') {
      open.push_back(at);
    } else if (text[at] == '}' && !open.empty()) {
      ends[open.back()] = at + 1;
      open.pop_back();
    }
    ++at;
  }
  return ends;
}

/// Arguments as JSON text: texts in JSON's quotes, and keys that follow a
/// brace or comma at once in quotes.
std::string to_json(std::string_view text) {
  std::string out;
  char last = 0;
  while (!text.empty()) {
    if (text.starts_with(kQuote)) {
      const auto size = quoted_size(text);
      const auto inner = text.substr(kQuote.size(), size - 2 * kQuote.size());
      out += dump(Json(inner));
      text.remove_prefix(size);
      last = '"';
      continue;
    }
    const auto word = text.substr(0, word_size(text));
    if (!word.empty()) {
      const bool key = (last == '{' || last == ',') &&
                       text.substr(word.size()).starts_with(':');
      out += key ? '"' + std::string(word) + '"' : std::string(word);
    } else {
      out += text.front();
    }
    last = text[std::max<std::size_t>(word.size(), 1) - 1];
    text.remove_prefix(std::max<std::size_t>(word.size(), 1));
  }
  return out;
}

}  // namespace

/// call:f{number:1,text:<|"|>a, b<|"|>,list:[{x:1}]}, which may repeat.
ToolCalls parse_gemma4(std::string_view text, const ToolSchemas&) {
  constexpr std::string_view kMark = "call:";
  std::vector<ToolCall> calls;
  const auto ends = brace_ends(text);
  for (auto at = text.find(kMark); at != text.npos; at = text.find(kMark, at)) {
    at += kMark.size();
    const auto name = text.substr(at, word_size(text.substr(at), "-"));
    const auto begin = at + name.size();
    if (name.empty() || begin == text.size() || ends[begin] == 0) {
      continue;
    }
    at = ends[begin];
    const auto arguments = parse_json(to_json(text.substr(begin, at - begin)));
    if (!arguments) {
      return malformed(kFormat, "the arguments are not in its notation");
    }
    calls.push_back(make_call(name, *arguments));
  }
  if (calls.empty()) {
    return malformed(kFormat, "there is no call:name{...}");
  }
  return calls;
}

}  // namespace afterglow::tool_parsers
