#pragma once

#include "base/result.h"
#include "model/model.h"
#include "text/tokenizer.h"

namespace afterglow {

/// The tokenizer a model's files describe. Errors: as Tokenizer's.
Result<Tokenizer> make_tokenizer(const TokenizerSource& source);

}  // namespace afterglow
