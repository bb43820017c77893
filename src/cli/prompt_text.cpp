#include "cli/prompt_text.h"

#include <iostream>
#include <iterator>

namespace afterglow {

std::string unescape(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = i + 1 < text.size() ? text[i + 1] : 0;
    if (text[i] == '\\' && (next == 'n' || next == 't')) {
      result += next == 'n' ? '\n' : '\t';
      ++i;
    } else {
      result += text[i];
    }
  }
  return result;
}

std::string read_standard_input() {
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

}  // namespace afterglow
