#pragma once

#include <string>
#include <utility>
#include <variant>

#include "afterglow/error.h"
#include "base/check.h"

namespace afterglow {

/// An expected failure: a code and a text that starts with the operation,
/// `[store.open] ...`, and says what the person can do.
struct Error {
  Code code;
  std::string message;
};

/// A value or an Error.
/// Requires: value() only when ok(), error() only when not (CHECKed).
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    CHECK(ok(), "value() of an error: " + error().message);
    return std::get<0>(state_);
  }
  const T& value() const& {
    CHECK(ok(), "value() of an error: " + error().message);
    return std::get<0>(state_);
  }
  T&& value() && {
    CHECK(ok(), "value() of an error: " + error().message);
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    CHECK(!ok(), "error() of a value");
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

/// Success or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), failed_(true) {}

  bool ok() const { return !failed_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    CHECK(failed_, "error() of a success");
    return error_;
  }

 private:
  Error error_{Code::kInternal, {}};
  bool failed_ = false;
};

using Status = Result<void>;

}  // namespace afterglow
