#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "server/api_error.h"

namespace afterglow {

/// Takes typed, range-checked members out of a JSON object and remembers the
/// first fault. A member that is null counts as absent, as OpenAI's clients
/// send it. After a fault the getters return nothing.
class FieldReader {
 public:
  using json = nlohmann::ordered_json;

  /// The object must outlive the reader. prefix: put before names in errors,
  /// such as "stream_options.".
  explicit FieldReader(const json& object, std::string prefix = {})
      : object_(object), prefix_(std::move(prefix)) {}

  /// The member, or nullptr when absent or null.
  const json* find(const std::string& name);
  std::optional<bool> boolean(const std::string& name);
  /// Errors: not an integer (5.0 is none), or outside [low, high].
  std::optional<std::int64_t> integer(
      const std::string& name, std::int64_t low, std::int64_t high
  );
  /// Errors: not a number, or outside [low, high].
  std::optional<double> number(
      const std::string& name, double low, double high
  );
  std::optional<std::string> text(const std::string& name);

  /// Refuses the member unless it is absent, null or equal to `harmless`.
  void refuse(
      const std::string& name,
      const std::string& why,
      const json& harmless = nullptr
  );
  /// Faults on a member nobody asked for.
  void refuse_unknown();

  void fail(
      const std::string& name,
      const std::string& message,
      const std::string& code = {}
  );
  /// Takes over the fault of another reader, of a member's own members.
  void fail(const ApiError& fault) {
    if (!error_) error_ = fault;
  }
  const std::optional<ApiError>& error() const { return error_; }

 private:
  const json& object_;
  std::string prefix_;
  std::set<std::string, std::less<>> known_;
  std::optional<ApiError> error_;
};

}  // namespace afterglow
