#include "cli/chat/conversation.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace afterglow {
namespace {

using Json = nlohmann::ordered_json;

constexpr unsigned kVersion = 1;

Error wrong(const std::string& what) {
  return {Code::kCorrupt, what};
}

/// The text of a field, or none where it is missing or something else.
const std::string* text_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : found->get_ptr<const std::string*>();
}

Status check_version(const Json& json) {
  const auto version = json.find("version");
  if (version == json.end() || !version->is_number_integer()) {
    return wrong("it has no version");
  }
  const std::string which =
      "it is a conversation of version " + version->dump();
  if (!version->is_number_unsigned() || *version == 0u) {
    return wrong(which + ", which no afterglow wrote");
  }
  if (*version != kVersion) {
    return Error{Code::kUnsupported, which + ", which a later afterglow wrote"};
  }
  return {};
}

Result<Message> parse_message(const Json& json, std::size_t index) {
  const std::string where = "message " + std::to_string(index + 1);
  if (!json.is_object()) return wrong(where + " is no object");
  const std::string* role = text_of(json, "role");
  const std::string* content = text_of(json, "content");
  if (role == nullptr || content == nullptr) {
    return wrong(where + " has no role or no content");
  }
  const char* expected = index % 2 == 0 ? "user" : "assistant";
  if (*role != expected) {
    return wrong(where + " is not of the " + std::string(expected));
  }
  return Message{*role, *content};
}

}  // namespace

bool Conversation::operator==(const Conversation& other) const {
  const auto same = [](const Message& a, const Message& b) {
    return a.role == b.role && a.content == b.content;
  };
  return model == other.model && system_prompt == other.system_prompt &&
         std::ranges::equal(messages, other.messages, same);
}

std::vector<Message> with_message(
    const Conversation& conversation, const std::string& text
) {
  std::vector<Message> all;
  if (conversation.system_prompt) {
    all.push_back({"system", *conversation.system_prompt});
  }
  all.insert(
      all.end(), conversation.messages.begin(), conversation.messages.end()
  );
  all.push_back({"user", text});
  return all;
}

std::string to_json(const Conversation& conversation) {
  Json messages = Json::array();
  for (const Message& message : conversation.messages) {
    messages.push_back({{"role", message.role}, {"content", message.content}});
  }
  Json json = {{"version", kVersion}, {"model", conversation.model}};
  json["system_prompt"] =
      conversation.system_prompt ? Json(*conversation.system_prompt) : Json();
  json["messages"] = std::move(messages);
  // The model's name is that of a file, in any bytes.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Conversation> parse_conversation(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return wrong("it is no JSON object");
  if (Status known = check_version(json); !known.ok()) return known.error();
  Conversation conversation;
  const std::string* model = text_of(json, "model");
  if (model == nullptr) return wrong("it names no model");
  conversation.model = *model;
  const auto system = json.find("system_prompt");
  if (system == json.end() || !(system->is_null() || system->is_string())) {
    return wrong("its system prompt is neither text nor null");
  }
  if (system->is_string()) conversation.system_prompt = *system;
  const auto messages = json.find("messages");
  if (messages == json.end() || !messages->is_array()) {
    return wrong("it has no list of messages");
  }
  for (const Json& one : *messages) {
    auto message = parse_message(one, conversation.messages.size());
    if (!message.ok()) return message.error();
    conversation.messages.push_back(*std::move(message));
  }
  if (conversation.messages.size() % 2 != 0) {
    return wrong("its last message has no answer");
  }
  return conversation;
}

}  // namespace afterglow
