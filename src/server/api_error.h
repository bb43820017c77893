#pragma once

#include <exception>
#include <string>

#include "base/result.h"

namespace afterglow {

/// An error as an OpenAI client sees it.
struct ApiError {
  unsigned status = 500;
  std::string type = "server_error";
  std::string message;
  std::string operation;       // what failed, "store.open"; for the log only
  std::string param;           // the field at fault; empty: null
  std::string code;            // a word for programs; empty: null
  unsigned retry_seconds = 0;  // when to try again; 0: as the status says
};

/// The one place that maps an engine's code to HTTP and takes the operation off
/// its text.
ApiError to_api_error(const Error& error);

/// What a request is told whose work threw: 503 where memory ran out, else 500.
ApiError to_api_error(const std::exception& thrown);

/// 400 for a request's field.
ApiError invalid_field(
    std::string param, std::string message, std::string code = {}
);

/// 503: the server is shutting down.
ApiError stopping_error();

/// The message with the operation in front, if there is one.
std::string text_for_log(const ApiError& error);

/// " code=... param=...": what the log tells of a request that failed. Nothing
/// that its client wrote, so no unknown member's name.
std::string fault_for_log(const ApiError& error);

/// {"error": {message, type, param, code}}.
std::string to_json(const ApiError& error);

/// Seconds a client should wait before it tries again; 0: no such advice.
unsigned retry_after(const ApiError& error);

}  // namespace afterglow
