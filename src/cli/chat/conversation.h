#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "afterglow/model.h"
#include "base/result.h"

namespace afterglow {

/// What was said: pairs of a user's message and its answer, in order.
struct Conversation {
  std::string model;  // the name of the one that answered; empty: nobody yet
  std::optional<std::string> system_prompt;
  std::vector<Message> messages;

  bool operator==(const Conversation& other) const;
};

/// The messages of a prompt: system prompt, conversation, and one more.
std::vector<Message> with_message(
    const Conversation& conversation, const std::string& text
);

/// {"version":1,"model":...,"system_prompt":...,"messages":[{"role":...,
/// "content":...},...]} with null where there is no system prompt.
/// Requires: all texts are UTF-8.
std::string to_json(const Conversation& conversation);

/// Reads what to_json wrote; fields that it does not know are passed over.
/// Errors: kCorrupt for anything else, kUnsupported for a later version; the
/// text says what is wrong and leaves it to the caller where.
Result<Conversation> parse_conversation(std::string_view json);

}  // namespace afterglow
