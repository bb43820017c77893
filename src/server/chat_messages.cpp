#include "server/chat_messages.h"

#include <nlohmann/json.hpp>
#include <string>

#include "server/json_body.h"

namespace afterglow {
namespace {

using json = nlohmann::ordered_json;
using Fault = std::optional<ApiError>;

ApiError fault(
    const std::string& where,
    const std::string& message,
    const std::string& code = {}
) {
  return invalid_field(where, "'" + where + "' " + message, code);
}

/// Replaces a list of text parts by their text.
Fault join_parts(json& content, const std::string& where) {
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const json& part = content[i];
    const std::string here = where + "[" + std::to_string(i) + "]";
    if (!part.is_object()) return fault(here, "must be an object");
    const auto type = part.find("type");
    if (type == part.end() || !type->is_string()) {
      return fault(here + ".type", "must be a string");
    }
    if (*type != "text") {
      return fault(
          here + ".type",
          "is \"" + type->get<std::string>() +
              "\", but this model takes parts of type \"text\" only",
          "unsupported"
      );
    }
    const auto value = part.find("text");
    if (value == part.end() || !value->is_string()) {
      return fault(here + ".text", "must be a string");
    }
    text += value->get_ref<const std::string&>();
  }
  content = std::move(text);
  return std::nullopt;
}

Fault normalize_content(json& message, const std::string& where) {
  const auto content = message.find("content");
  if (content == message.end()) {
    const bool optional = message["role"] == "assistant";
    if (!optional) return fault(where, "is missing");
    message["content"] = "";
    return std::nullopt;
  }
  if (content->is_null()) *content = "";
  if (content->is_string()) return std::nullopt;
  if (content->is_array()) return join_parts(*content, where);
  return fault(where, "must be a string, null or a list of parts");
}

/// Clients send arguments as JSON text; templates want the value.
Fault normalize_tool_calls(json& message, const std::string& where) {
  const auto calls = message.find("tool_calls");
  if (calls == message.end()) return std::nullopt;
  if (calls->is_null()) {
    message.erase("tool_calls");
    return std::nullopt;
  }
  if (!calls->is_array()) return fault(where, "must be a list");
  for (std::size_t i = 0; i < calls->size(); ++i) {
    json& call = (*calls)[i];
    const std::string here = where + "[" + std::to_string(i) + "]";
    if (!call.is_object()) return fault(here, "must be an object");
    const auto function = call.find("function");
    if (function == call.end() || !function->is_object()) {
      return fault(here + ".function", "must be an object");
    }
    const auto arguments = function->find("arguments");
    if (arguments == function->end() || !arguments->is_string()) continue;
    auto parsed = parse_json_body(arguments->get_ref<const std::string&>());
    if (!parsed.ok()) {
      return fault(here + ".function.arguments", "is not valid JSON");
    }
    *arguments = std::move(*parsed);
  }
  return std::nullopt;
}

}  // namespace

Fault normalize_messages(json& messages) {
  if (!messages.is_array()) return fault("messages", "must be a list");
  if (messages.empty()) return fault("messages", "must not be empty");
  for (std::size_t i = 0; i < messages.size(); ++i) {
    json& message = messages[i];
    const std::string here = "messages[" + std::to_string(i) + "]";
    if (!message.is_object()) return fault(here, "must be an object");
    const auto role = message.find("role");
    if (role == message.end() || !role->is_string() ||
        role->get_ref<const std::string&>().empty()) {
      return fault(here + ".role", "must be a string");
    }
    if (*role == "developer") *role = "system";
    if (auto bad = normalize_content(message, here + ".content")) return bad;
    if (auto bad = normalize_tool_calls(message, here + ".tool_calls")) {
      return bad;
    }
  }
  return std::nullopt;
}

}  // namespace afterglow
