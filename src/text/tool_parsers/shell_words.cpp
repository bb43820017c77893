#include "text/tool_parsers/shell_words.h"

#include <utility>

namespace afterglow::tool_parsers {

std::optional<std::vector<std::string>> shell_words(std::string_view text) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool space = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    if (quote == 0 && space) {
      if (word) {
        words.push_back(*std::exchange(word, std::nullopt));
      }
      continue;
    }
    word = word ? std::move(word) : std::optional(std::string());
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == '\\' && quote != '\'') {
      if (++i == text.size()) {
        return {};
      }
      const bool kept = quote == '"' && text[i] != '"' && text[i] != '\\';
      *word += kept ? "\\" : "";
      *word += text[i];
    } else {
      *word += c;
    }
  }
  if (quote != 0) {
    return {};
  }
  if (word) {
    words.push_back(*std::move(word));
  }
  return words;
}

}  // namespace afterglow::tool_parsers
