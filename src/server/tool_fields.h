#pragma once

#include <string>

#include "server/field_reader.h"
#include "server/openai_schema.h"

namespace afterglow {

/// Reads `tools`, which go to the chat template as they came: a JSON array, or
/// "" for none.
std::string read_tools(FieldReader& fields);

/// Reads `tool_choice` and `parallel_tool_calls`. Tools stay in the prompt when
/// the choice is "none": cached prompts with and without it are the same.
void read_tool_use(FieldReader& fields, CompletionRequest& request);

}  // namespace afterglow
