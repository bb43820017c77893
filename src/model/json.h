#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace afterglow {

/// Parses strict JSON. Refuses duplicate keys, which readers disagree about,
/// and nesting deeper than 64. `where` starts the message.
/// Errors: kCorrupt.
Result<nlohmann::json> parse_json(
    std::string_view text, const std::string& where
);

/// Reads typed fields of a JSON object. The first field that is missing or
/// of a wrong type becomes status(); what is read after that is meaningless.
class JsonFields {
 public:
  /// Requires: `object` outlives this. `where` starts messages.
  JsonFields(const nlohmann::json& object, std::string where);

  /// Whether the field is there and not null.
  bool has(const char* name) const;
  const nlohmann::json* find(const char* name) const;

  /// A positive integer below 2^31.
  std::size_t count(const char* name);
  std::size_t count(const char* name, std::size_t fallback);
  /// A finite number.
  double number(const char* name);
  double number(const char* name, double fallback);
  bool boolean(const char* name, bool fallback);
  std::string text(const char* name);
  std::string text(const char* name, const std::string& fallback);

  /// Records an error about a field unless there is one already.
  void fail(Code code, const std::string& name, const std::string& why);
  const Status& status() const { return status_; }

 private:
  const nlohmann::json& object_;
  std::string where_;
  Status status_;
};

}  // namespace afterglow
