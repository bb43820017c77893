#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "server/api_error.h"

namespace afterglow {

/// Checks OpenAI messages and brings them into the form chat templates take:
/// content is text (parts joined, null as ""), arguments of tool calls are
/// objects, the role "developer" is "system". Other members stay as they are
/// for the template.
std::optional<ApiError> normalize_messages(nlohmann::ordered_json& messages);

}  // namespace afterglow
