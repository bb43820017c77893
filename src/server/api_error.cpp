#include "server/api_error.h"

#include <new>
#include <nlohmann/json.hpp>
#include <utility>

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

}  // namespace

ApiError to_api_error(const Error& error) {
  const Mapping mapping = mapping_of(error.code);
  ApiError result;
  result.status = mapping.status;
  result.type = mapping.type;
  result.code = mapping.code;
  result.message = error.message;
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
