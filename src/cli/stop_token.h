#pragma once

#include <string>

#include "afterglow/model.h"

namespace afterglow {

/// The token that a flag names, by its number or its text.
/// Throws: kInvalidArgument, naming the flag, for text that is not one token
/// of the model.
Token find_stop_token(
    const Model& model, const std::string& flag, const std::string& text
);

}  // namespace afterglow
