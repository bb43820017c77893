#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "server/field_reader.h"
#include "server/openai_schema.h"

namespace afterglow {

/// Reads the prompts of POST /v1/completions: a string, a list of token ids,
/// or a list of several such.
void read_text_prompts(FieldReader& fields, CompletionRequest& request);

/// The ids of a list of token ids; nothing for any other value.
std::optional<TokenPrompt> to_tokens(const nlohmann::ordered_json& list);

/// Reads a conversation: `messages`, `tools`, `role_mapping` and
/// `chat_template_kwargs`.
ChatPrompt read_chat_prompt(
    FieldReader& fields, const RequestDefaults& defaults
);

/// The member that an error of Engine::render_chat is about.
const char* member_at_fault(const ChatPrompt& chat, const Error& error);

}  // namespace afterglow
