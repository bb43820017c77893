#pragma once

#include <string>
#include <utility>

#include "afterglow/error.h"
#include "base/result.h"

namespace afterglow {

/// The boundary between results and exceptions.
[[noreturn]] inline void raise(const Error& error) {
  throw Exception(error.code, error.message);
}

inline void require(const Status& status) {
  if (!status.ok()) raise(status.error());
}

/// operation: what texts begin with that do not name one.
template <class T>
T require(Result<T> result, const char* operation = nullptr) {
  if (!result.ok()) {
    Error error = result.error();
    if (operation != nullptr && !error.message.starts_with('[')) {
      error.message = "[" + std::string(operation) + "] " + error.message;
    }
    raise(error);
  }
  return *std::move(result);
}

}  // namespace afterglow
