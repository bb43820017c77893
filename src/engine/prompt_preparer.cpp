#include "engine/prompt_preparer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace afterglow {
namespace {

using Json = nlohmann::ordered_json;

Result<Json> parse_messages(std::string_view text) {
  Json messages = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!messages.is_array() || messages.empty()) {
    return Error{
        Code::kInvalidArgument, "messages must be a list that is not empty"};
  }
  for (const Json& message : messages) {
    if (!message.is_object() || !message.contains("role") ||
        !message["role"].is_string()) {
      return Error{
          Code::kInvalidArgument, "each message must be an object with a role"};
    }
  }
  return messages;
}

std::size_t leading_system_messages(const Json& messages) {
  std::size_t count = 0;
  while (count < messages.size() && messages[count]["role"] == "system") {
    ++count;
  }
  return count;
}

// What models without a template get: mlx_lm's default role mapping.
std::string join_messages(const Json& messages) {
  std::string text;
  for (const Json& message : messages) {
    std::string role = message["role"];
    if (role == "system") {
      text += "ASSISTANT's RULE: ";
    } else if (role == "user") {
      text += "USER: ";
    } else if (role == "assistant") {
      text += "ASSISTANT: ";
    }
    auto content = message.find("content");
    if (content != message.end() && content->is_string()) {
      text += content->get<std::string>();
    }
    text += "\n";
  }
  return text + "ASSISTANT:";
}

}  // namespace

PromptPreparer::PromptPreparer(
    const Tokenizer& tokenizer, const std::optional<ChatTemplate>& chat
)
    : tokenizer_(tokenizer), chat_(chat) {}

Result<PreparedPrompt> PromptPreparer::chat(
    std::string_view messages_json,
    std::string_view tools_json,
    std::string_view kwargs_json
) const {
  Result<Json> messages = parse_messages(messages_json);
  if (!messages.ok()) {
    return messages.error();
  }
  if (!chat_) {
    return text(join_messages(*messages));
  }
  auto tokens_of = [&](std::string_view json, bool add_generation_prompt
                   ) -> Result<std::vector<Token>> {
    Result<std::string> rendered =
        chat_->render(json, tools_json, add_generation_prompt, kwargs_json);
    if (!rendered.ok()) {
      return rendered.error();
    }
    return tokenizer_.encode(
        *rendered, /*add_special=*/false, /*parse_special=*/true
    );
  };
  Result<std::vector<Token>> prompt = tokens_of(messages_json, true);
  if (!prompt.ok()) {
    return prompt.error();
  }
  PreparedPrompt prepared{std::move(*prompt), {}};

  // The system prompt ends where the same messages with another user message
  // begin to differ. A template that refuses that gives no boundary.
  std::size_t system = leading_system_messages(*messages);
  if (system > 0 && system < messages->size()) {
    Json probe(
        messages->begin(),
        messages->begin() + static_cast<std::ptrdiff_t>(system)
    );
    probe.push_back({{"role", "user"}, {"content", ""}});
    Result<std::vector<Token>> other = tokens_of(probe.dump(), false);
    if (other.ok()) {
      auto end = std::mismatch(
                     other->begin(),
                     other->end(),
                     prepared.tokens.begin(),
                     prepared.tokens.end()
      )
                     .second;
      auto length = static_cast<std::size_t>(end - prepared.tokens.begin());
      if (length > 0 && length < prepared.tokens.size()) {
        prepared.boundaries.push_back({EntryType::kSystem, length});
      }
    }
  }
  return prepared;
}

Result<PreparedPrompt> PromptPreparer::text(std::string_view text) const {
  Result<std::vector<Token>> tokens =
      tokenizer_.encode(text, /*add_special=*/true, /*parse_special=*/true);
  if (!tokens.ok()) {
    return tokens.error();
  }
  return PreparedPrompt{std::move(*tokens), {}};
}

}  // namespace afterglow
