#include "server/entry_texts.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

#include "server/api_keys.h"

namespace afterglow {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t kMostCharacters = 80;

/// Where to begin reading: at the last special token before the branch, as
/// there a message begins.
std::size_t start_of(const Branch& branch, const Tokenizer& tokenizer) {
  for (std::size_t i = std::min(branch.lead + 1, branch.tokens.size());
       i-- > 0;) {
    if (tokenizer.is_special(branch.tokens[i])) return i;
  }
  const bool whole = branch.lead == branch.at;
  return whole ? 0 : branch.lead;
}

bool is_white(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/// Adds a text to a line: each run of white space becomes one space.
void add_to_line(std::string& line, std::string_view text) {
  for (const char c : text) {
    if (!is_white(c)) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
}

/// The first characters of valid UTF-8, without white space at the end.
void shorten(std::string& line) {
  std::size_t characters = 0;
  std::size_t end = 0;
  for (; end < line.size(); ++end) {
    const bool starts = (static_cast<unsigned char>(line[end]) & 0xC0) != 0x80;
    if (starts && characters++ == kMostCharacters) break;
  }
  line.resize(end);
  if (!line.empty() && line.back() == ' ') line.pop_back();
}

std::string line_of(const Branch& branch, const Tokenizer& tokenizer) {
  std::string line;
  std::span<const Token> rest(branch.tokens);
  rest = rest.subspan(start_of(branch, tokenizer));
  while (!rest.empty()) {
    const auto special = std::ranges::find_if(rest, [&](Token token) {
      return tokenizer.is_special(token);
    });
    const auto plain = static_cast<std::size_t>(special - rest.begin());
    add_to_line(line, tokenizer.decode(rest.first(plain), true));
    add_to_line(line, " ");
    rest = rest.subspan(std::min(plain + 1, rest.size()));
  }
  shorten(line);
  return line;
}

}  // namespace

TextRight::TextRight(const HttpRequest& request)
    : has_key_(!api_key_of(request).empty()),
      is_local_(request.over_loopback && request.origin.empty()) {}

bool TextRight::covers(const std::string& cache_namespace) const {
  return has_key_ ? !cache_namespace.empty() : is_local_;
}

json entry_texts_json(const ListedEntry& entry, const Tokenizer& tokenizer) {
  json texts = json::array();
  for (const Branch& branch : entry.branches) {
    texts.push_back({{"from", branch.at}, {"text", line_of(branch, tokenizer)}}
    );
  }
  return texts;
}

}  // namespace afterglow
