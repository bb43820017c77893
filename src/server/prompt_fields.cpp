#include "server/prompt_fields.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "server/chat_messages.h"
#include "server/tool_fields.h"

namespace afterglow {
namespace {

using json = nlohmann::ordered_json;

constexpr Token kMostToken = std::numeric_limits<Token>::max();

/// Nothing for other than a string or a list of token ids.
std::optional<AnyPrompt> to_prompt(const json& value) {
  if (value.is_string()) return AnyPrompt(value.get<TextPrompt>());
  auto tokens = to_tokens(value);
  if (!tokens) return std::nullopt;
  return AnyPrompt(*std::move(tokens));
}

/// Whether it is a list of prompts, and not of token ids.
bool holds_prompts(const json& value) {
  return value.is_array() && !value.empty() &&
         std::all_of(value.begin(), value.end(), [](const json& one) {
           return one.is_string() || one.is_array();
         });
}

/// The variables of the chat template: the defaults, with the request's own
/// put over them.
std::string read_template_variables(
    FieldReader& fields, const RequestDefaults& defaults
) {
  const json* kwargs = fields.find("chat_template_kwargs");
  if (kwargs == nullptr) return defaults.chat_template_args;
  if (!kwargs->is_object()) {
    fields.fail("chat_template_kwargs", "must be an object");
    return {};
  }
  if (kwargs->contains("messages") || kwargs->contains("tools")) {
    fields.fail(
        "chat_template_kwargs", "must not replace 'messages' or 'tools'"
    );
    return {};
  }
  if (defaults.chat_template_args.empty()) return kwargs->dump();
  json variables = json::parse(defaults.chat_template_args);
  variables.update(*kwargs);
  return variables.dump();
}

std::string read_role_mapping(FieldReader& fields) {
  const json* mapping = fields.find("role_mapping");
  if (mapping == nullptr) return {};
  const bool good =
      mapping->is_object() &&
      std::all_of(mapping->begin(), mapping->end(), [](const json& text) {
        return text.is_string();
      });
  if (!good) {
    fields.fail("role_mapping", "must be an object of role to text");
    return {};
  }
  return mapping->dump();
}

}  // namespace

std::optional<TokenPrompt> to_tokens(const json& list) {
  if (!list.is_array()) return std::nullopt;
  TokenPrompt tokens;
  tokens.reserve(list.size());
  for (const json& one : list) {
    if (!one.is_number_integer() || one < 0 || one > kMostToken) {
      return std::nullopt;
    }
    tokens.push_back(one.get<Token>());
  }
  return tokens;
}

void read_text_prompts(FieldReader& fields, CompletionRequest& request) {
  const json* prompt = fields.find("prompt");
  if (prompt == nullptr) {
    fields.fail("prompt", "is missing");
    return;
  }
  if (prompt->is_array() && prompt->empty()) {
    fields.fail("prompt", "must not be empty");
    return;
  }
  const bool several = holds_prompts(*prompt);
  const json one_prompt = json::array({*prompt});
  for (const json& one : several ? *prompt : one_prompt) {
    auto read = to_prompt(one);
    if (!read) {
      fields.fail(
          "prompt", "must be a string, a list of token ids, or a list of such"
      );
      return;
    }
    request.prompts.push_back(*std::move(read));
  }
}

ChatPrompt read_chat_prompt(
    FieldReader& fields, const RequestDefaults& defaults
) {
  ChatPrompt prompt;
  prompt.kwargs_json = read_template_variables(fields, defaults);
  prompt.role_mapping_json = read_role_mapping(fields);
  prompt.tools_json = read_tools(fields);
  const json* given = fields.find("messages");
  if (given == nullptr) {
    fields.fail("messages", "is missing");
    return prompt;
  }
  json messages = *given;
  const json* mapping = fields.find("role_mapping");
  if (const auto fault =
          normalize_messages(messages, mapping ? *mapping : json())) {
    fields.fail(*fault);
  } else {
    prompt.messages_json = messages.dump();
  }
  return prompt;
}

const char* member_at_fault(const ChatPrompt& chat, const Error& error) {
  if (error.code != Code::kUnsupported) return "messages";
  return chat.role_mapping_json.empty() ? "tools" : "role_mapping";
}

}  // namespace afterglow
