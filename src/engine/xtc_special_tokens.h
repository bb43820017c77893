#pragma once

#include <vector>

#include "base/token.h"
#include "text/tokenizer.h"

namespace afterglow {

/// What mlx_lm's programs keep out of XTC: the line break and what ends an
/// answer.
std::vector<Token> xtc_special_tokens(
    const Tokenizer& tokenizer, std::vector<Token> stop_tokens
);

}  // namespace afterglow
