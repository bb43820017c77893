#include "engine/xtc_special_tokens.h"

namespace afterglow {

std::vector<Token> xtc_special_tokens(
    const Tokenizer& tokenizer, std::vector<Token> stop_tokens
) {
  const auto line_break =
      tokenizer.encode("\n", /*add_special=*/false, /*parse_special=*/false);
  if (line_break.ok()) {
    stop_tokens.insert(
        stop_tokens.end(), line_break->begin(), line_break->end()
    );
  }
  return stop_tokens;
}

}  // namespace afterglow
