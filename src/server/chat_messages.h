#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "server/api_error.h"

namespace afterglow {

/// Checks OpenAI messages and brings them into the form chat templates take:
/// content is text (parts joined, null as ""), arguments of tool calls are
/// objects ({} where they are empty or absent), the role "developer" is
/// "system". Other members stay as they are for the template.
/// role_mapping: an object whose members are roles, too; null: none.
/// Errors: also what looks like a role of OpenAI's written wrong. Other roles
/// are the template's to judge.
std::optional<ApiError> normalize_messages(
    nlohmann::ordered_json& messages, const nlohmann::ordered_json& role_mapping
);

}  // namespace afterglow
