#pragma once

#include <string>

#include "base/result.h"

namespace afterglow {

/// The chat template that a value of `--chat-template` means: the template's
/// text, as mlx_lm takes it, or, of a value that ends in ".jinja" and has no
/// brace, what is in the file of that name. "" is none.
/// Errors: kInvalidArgument for what cannot be a template, as it does not
/// speak of `messages`; kIo for a file that cannot be read.
Result<std::string> read_chat_template(const std::string& value);

}  // namespace afterglow
