#include "text/tool_parsers/scan.h"

#include <algorithm>
#include <array>

namespace afterglow::tool_parsers {
namespace {

constexpr auto kNone = std::string_view::npos;

// White space beyond ASCII, as UTF-8.
constexpr std::array<std::string_view, 19> kWideSpaces = {
    "\u0085",
    "\u00a0",
    "\u1680",
    "\u2000",
    "\u2001",
    "\u2002",
    "\u2003",
    "\u2004",
    "\u2005",
    "\u2006",
    "\u2007",
    "\u2008",
    "\u2009",
    "\u200a",
    "\u2028",
    "\u2029",
    "\u202f",
    "\u205f",
    "\u3000"};

bool is_narrow_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f');
}

std::string_view skip_space_and_newline_words(std::string_view text) {
  while (true) {
    text = skip_space(text);
    if (!take_prefix(text, "\\n")) {
      return text;
    }
  }
}

}  // namespace

std::size_t space_size(std::string_view text) {
  if (text.empty()) {
    return 0;
  }
  if (is_narrow_space(text.front())) {
    return 1;
  }
  for (const auto space : kWideSpaces) {
    if (text.starts_with(space)) {
      return space.size();
    }
  }
  return 0;
}

std::string_view skip_space(std::string_view text) {
  while (const auto size = space_size(text)) {
    text.remove_prefix(size);
  }
  return text;
}

std::string_view strip_end(std::string_view text) {
  while (!text.empty()) {
    const auto is_end = [&](std::string_view s) { return text.ends_with(s); };
    if (is_narrow_space(text.back())) {
      text.remove_suffix(1);
    } else if (const auto* wide = std::ranges::find_if(kWideSpaces, is_end);
               wide != kWideSpaces.end()) {
      text.remove_suffix(wide->size());
    } else {
      break;
    }
  }
  return text;
}

std::string_view strip(std::string_view text) {
  return strip_end(skip_space(text));
}

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

std::size_t word_size(std::string_view text, std::string_view more) {
  const auto end = std::ranges::find_if(text, [&](char c) {
    return !is_word(c) && more.find(c) == kNone;
  });
  return static_cast<std::size_t>(end - text.begin());
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (auto& c : out) {
    if (c >= 'A' && c <= 'Z') {
      c = static_cast<char>(c - 'A' + 'a');
    }
  }
  return out;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) {
    return false;
  }
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<std::string_view> take_between(
    std::string_view& text, std::string_view open, std::string_view close
) {
  const auto at = text.find(open);
  if (at == kNone) {
    return {};
  }
  const auto begin = at + open.size();
  const auto end = text.find(close, begin);
  if (end == kNone) {
    return {};
  }
  const auto found = text.substr(begin, end - begin);
  text.remove_prefix(end + close.size());
  return found;
}

std::optional<std::pair<std::string_view, std::string_view>> take_pair(
    std::string_view& text, const PairMarks& marks
) {
  const auto at = text.find(marks.open_key);
  if (at == kNone) {
    return {};
  }
  const auto begin = at + marks.open_key.size();
  for (auto close = text.find(marks.close_key, begin); close != kNone;
       close = text.find(marks.close_key, close + 1)) {
    // A key's end without a value behind it belongs to the key.
    auto rest =
        skip_space_and_newline_words(text.substr(close + marks.close_key.size())
        );
    if (!take_prefix(rest, marks.open_value)) {
      continue;
    }
    const auto end = rest.find(marks.close_value);
    if (end == kNone) {
      return {};
    }
    const auto key = text.substr(begin, close - begin);
    const auto value = rest.substr(0, end);
    text = rest.substr(end + marks.close_value.size());
    return std::pair(key, value);
  }
  return {};
}

std::string_view unquoted(std::string_view name) {
  name = strip(name);
  const auto within = [&](char quote) {
    return name.size() >= 2 && name.starts_with(quote) && name.ends_with(quote);
  };
  return within('"') || within('\'') ? name.substr(1, name.size() - 2) : name;
}

}  // namespace afterglow::tool_parsers
