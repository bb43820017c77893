#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "textkit.h"

namespace afterglow::textkit {

inline tk_view view(std::string_view text) {
  return {text.data(), text.size()};
}

inline std::string_view view(tk_view text) {
  return {text.data, text.size};
}

/// Copies a text out of the crate and gives its memory back.
inline std::string take(tk_buffer buffer) {
  std::string text(buffer.data, buffer.size);
  tk_buffer_free(buffer);
  return text;
}

inline Code code_of(tk_code code) {
  switch (code) {
    case TK_INVALID_ARGUMENT:
      return Code::kInvalidArgument;
    case TK_UNSUPPORTED:
      return Code::kUnsupported;
    case TK_CORRUPT:
      return Code::kCorrupt;
    case TK_NOT_FOUND:
      return Code::kNotFound;
    case TK_PERMISSION:
      return Code::kPermission;
    case TK_IO:
      return Code::kIo;
    case TK_NO_SPACE:
      return Code::kNoSpace;
    case TK_UNAVAILABLE:
      return Code::kUnavailable;
    case TK_CANCELLED:
      return Code::kCancelled;
    default:
      return Code::kInternal;
  }
}

/// The error of a call that returned `code`; frees its message.
inline Error take_error(
    std::string_view operation, tk_code code, tk_buffer message
) {
  return Error{
      code_of(code), "[" + std::string(operation) + "] " + take(message)};
}

}  // namespace afterglow::textkit
