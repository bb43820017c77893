#include "server/chat_messages.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/near_name.h"
#include "server/json_body.h"

namespace afterglow {
namespace {

using json = nlohmann::ordered_json;
using Fault = std::optional<ApiError>;

constexpr std::string_view kBlanks = " \t\r\n";
const std::vector<std::string> kRoles = {
    "system", "developer", "user", "assistant", "tool", "function"};

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

/// Clients send arguments as JSON text, some as "" or not at all where there
/// are none; templates want the value.
Fault normalize_arguments(json& function, const std::string& where) {
  json& arguments = function["arguments"];
  if (arguments.is_null()) arguments = json::object();
  if (!arguments.is_string()) return std::nullopt;
  const auto& text = arguments.get_ref<const std::string&>();
  if (text.find_first_not_of(kBlanks) == std::string::npos) {
    arguments = json::object();
    return std::nullopt;
  }
  auto parsed = parse_json_body(text);
  if (!parsed.ok()) return fault(where, "is not valid JSON");
  arguments = std::move(*parsed);
  return std::nullopt;
}

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
    const std::string place = here + ".function.arguments";
    if (auto bad = normalize_arguments(*function, place)) return bad;
  }
  return std::nullopt;
}

Fault normalize_role(
    json& message, const json& mapping, const std::string& where
) {
  const auto member = message.find("role");
  if (member == message.end()) return fault(where, "is missing");
  if (!member->is_string()) return fault(where, "must be a string");
  const auto& role = member->get_ref<const std::string&>();
  if (role.empty()) return fault(where, "must not be empty");
  const bool known =
      std::find(kRoles.begin(), kRoles.end(), role) != kRoles.end() ||
      mapping.contains(role);
  // Templates have roles of their own, but none that differs by a letter.
  const std::string meant = known ? "" : near_name(role, kRoles);
  if (!meant.empty()) {
    return fault(where, "is \"" + role + "\"; did you mean \"" + meant + "\"?");
  }
  if (role == "developer") *member = "system";
  return std::nullopt;
}

}  // namespace

Fault normalize_messages(json& messages, const json& role_mapping) {
  if (!messages.is_array()) return fault("messages", "must be a list");
  if (messages.empty()) return fault("messages", "must not be empty");
  for (std::size_t i = 0; i < messages.size(); ++i) {
    json& message = messages[i];
    const std::string here = "messages[" + std::to_string(i) + "]";
    if (!message.is_object()) return fault(here, "must be an object");
    if (auto bad = normalize_role(message, role_mapping, here + ".role")) {
      return bad;
    }
    if (auto bad = normalize_content(message, here + ".content")) return bad;
    if (auto bad = normalize_tool_calls(message, here + ".tool_calls")) {
      return bad;
    }
  }
  return std::nullopt;
}

}  // namespace afterglow
