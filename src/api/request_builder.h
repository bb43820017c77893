#pragma once

#include <optional>

#include "afterglow/cache_history.h"
#include "afterglow/model.h"
#include "engine/request.h"

namespace afterglow {

/// A request for a prompt, with the model's own stop tokens left out. Text is
/// tokenized; a history that does not say its tokens comes before the prompt.
/// Throws: kInvalidArgument for text that is not UTF-8.
GenerationRequest build_request(
    const Model& model,
    const Prompt& prompt,
    const std::optional<CacheHistory>& history
);

}  // namespace afterglow
