#include "server/api_error.h"

#include <new>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "server/log_value.h"

namespace afterglow {
namespace {

struct Mapping {
  unsigned status;
  const char* type;
  const char* code;
};

Mapping mapping_of(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return {400, "invalid_request_error", ""};
    case Code::kUnsupported:
      return {400, "invalid_request_error", "unsupported"};
    case Code::kNotFound:
      return {404, "not_found_error", "not_found"};
    case Code::kExists:
      return {409, "invalid_request_error", "exists"};
    case Code::kPermission:
      return {403, "permission_error", "permission"};
    case Code::kOverloaded:
      return {429, "rate_limit_error", "overloaded"};
    case Code::kUnavailable:
    case Code::kCancelled:
      return {503, "service_unavailable_error", "unavailable"};
    case Code::kExhausted:
      return {503, "service_unavailable_error", "out_of_memory"};
    case Code::kCorrupt:
    case Code::kIo:
    case Code::kNoSpace:
    case Code::kInternal:
      return {500, "server_error", ""};
  }
  return {500, "server_error", ""};
}

/// The length of "[area.what] " at a text's start, 0 where there is none.
std::size_t tag_length(std::string_view text) {
  constexpr std::string_view kWordLetters =
      "abcdefghijklmnopqrstuvwxyz0123456789_.-";
  if (text.empty() || text.front() != '[') return 0;
  const std::size_t end = text.find_first_not_of(kWordLetters, 1);
  const bool tag = end != text.npos && text.substr(end, 2) == "] " &&
                   text.substr(1, end - 1).find('.') != text.npos;
  return tag ? end + 2 : 0;
}

}  // namespace

ApiError to_api_error(const Error& error) {
  const Mapping mapping = mapping_of(error.code);
  ApiError result;
  result.status = mapping.status;
  result.type = mapping.type;
  result.code = mapping.code;
  const std::size_t tag = tag_length(error.message);
  if (tag > 0) result.operation = error.message.substr(1, tag - 3);
  result.message = error.message.substr(tag);
  return result;
}

ApiError to_api_error(const std::exception& thrown) {
  if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr) {
    return to_api_error(Error{
        Code::kExhausted, "[server.run] the server is out of memory"});
  }
  return to_api_error(Error{
      Code::kInternal, std::string("[server.run] ") + thrown.what()});
}

ApiError invalid_field(
    std::string param, std::string message, std::string code
) {
  ApiError error;
  error.status = 400;
  error.type = "invalid_request_error";
  error.message = std::move(message);
  error.param = std::move(param);
  error.code = std::move(code);
  return error;
}

ApiError stopping_error() {
  ApiError error;
  error.status = 503;
  error.type = "service_unavailable_error";
  error.code = "stopping";
  error.message = "the server is shutting down";
  error.operation = "server.stop";
  return error;
}

std::string text_for_log(const ApiError& error) {
  return error.operation.empty() ? error.message
                                 : "[" + error.operation + "] " + error.message;
}

std::string fault_for_log(const ApiError& error) {
  std::string text =
      " code=" + log_value(error.code.empty() ? error.type : error.code);
  if (!error.param.empty() && error.code != "unknown_field") {
    text += " param=" + log_value(error.param);
  }
  return text;
}

std::string to_json(const ApiError& error) {
  using json = nlohmann::ordered_json;
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? json(nullptr) : json(text);
  };
  json body;
  body["error"] = {
      {"message", error.message},
      {"type", error.type},
      {"param", text_or_null(error.param)},
      {"code", text_or_null(error.code)},
  };
  return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

unsigned retry_after(const ApiError& error) {
  if (error.retry_seconds > 0) return error.retry_seconds;
  return error.status == 429 || error.status == 503 ? 1 : 0;
}

}  // namespace afterglow
