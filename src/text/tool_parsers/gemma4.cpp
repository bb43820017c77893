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

/// Bytes from the brace at the start to the one that closes it; 0 when there
/// is none. Braces in texts don't count.
std::size_t braced_size(std::string_view text) {
  std::size_t depth = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (text.substr(at).starts_with(kQuote)) {
      const auto size = quoted_size(text.substr(at));
      if (size == 0) {
        return 0;
      }
      at += size;
      continue;
    }
    ++at;
    if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return at;
    }
  }
  return 0;
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
  for (auto at = text.find(kMark); at != text.npos; at = text.find(kMark, at)) {
    at += kMark.size();
    const auto name = text.substr(at, word_size(text.substr(at), "-"));
    const auto begin = at + name.size();
    if (name.empty() || !text.substr(begin).starts_with('{')) {
      continue;
    }
    const auto size = braced_size(text.substr(begin));
    if (size == 0) {
      continue;
    }
    const auto arguments = parse_json(to_json(text.substr(begin, size)));
    if (!arguments) {
      return malformed(kFormat, "the arguments are not in its notation");
    }
    calls.push_back(make_call(name, *arguments));
    at = begin + size;
  }
  if (calls.empty()) {
    return malformed(kFormat, "there is no call:name{...}");
  }
  return calls;
}

}  // namespace afterglow::tool_parsers
