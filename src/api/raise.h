#pragma once

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

template <class T>
T require(Result<T> result) {
  if (!result.ok()) raise(result.error());
  return *std::move(result);
}

}  // namespace afterglow
