#pragma once

#include <string_view>

#include "base/result.h"
#include "model/model.h"
#include "text/answer_format.h"
#include "text/tokenizer.h"

namespace afterglow {

/// The tokenizer a model's files describe. Errors: as Tokenizer's.
Result<Tokenizer> make_tokenizer(const TokenizerSource& source);

/// How the model's answers are to be taken apart, as far as its files and the
/// chat template in use tell. Errors: as infer_answer_format's.
Result<AnswerFormat> make_answer_format(
    const TokenizerSource& source,
    std::string_view chat_template,
    const Tokenizer& tokenizer
);

}  // namespace afterglow
