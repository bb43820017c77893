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

/// The error of a call that returned `code`; frees its message.
inline Error take_error(
    std::string_view operation, tk_code code, tk_buffer message
) {
  Code mapped = Code::kInternal;
  switch (code) {
    case TK_INVALID_ARGUMENT:
      mapped = Code::kInvalidArgument;
      break;
    case TK_UNSUPPORTED:
      mapped = Code::kUnsupported;
      break;
    case TK_CORRUPT:
      mapped = Code::kCorrupt;
      break;
    default:
      break;
  }
  return Error{mapped, "[" + std::string(operation) + "] " + take(message)};
}

}  // namespace afterglow::textkit
