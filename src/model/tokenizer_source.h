#pragma once

#include <string>

#include "base/result.h"
#include "model/gguf.h"
#include "model/model.h"

namespace afterglow {

/// What GGUF metadata says about the tokenizer. Requires: vocab_size rows in
/// the embedding. Errors: kCorrupt naming the key.
Result<TokenizerSource> tokenizer_from_gguf(
    const Gguf& gguf, std::size_t vocab_size, const std::string& where
);

/// What the files of a model directory say: tokenizer.json,
/// tokenizer_config.json, chat_template.jinja, generation_config.json and
/// config.json (for the tokens that end a generation). Files that are not
/// there leave their fields empty. Errors: kCorrupt, kIo, kPermission.
Result<TokenizerSource> tokenizer_from_directory(
    const std::string& directory, std::size_t vocab_size
);

}  // namespace afterglow
