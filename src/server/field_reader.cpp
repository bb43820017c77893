#include "server/field_reader.h"

#include <cmath>
#include <sstream>

namespace afterglow {
namespace {

std::string show(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

std::string range(const std::string& low, const std::string& high) {
  return high.empty() ? "at least " + low : "between " + low + " and " + high;
}

}  // namespace

const FieldReader::json* FieldReader::find(const std::string& name) {
  known_.insert(name);
  if (error_) return nullptr;
  const auto member = object_.find(name);
  if (member == object_.end() || member->is_null()) return nullptr;
  return &*member;
}

std::optional<bool> FieldReader::boolean(const std::string& name) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  fail(name, "must be true or false");
  return std::nullopt;
}

std::optional<std::int64_t> FieldReader::integer(
    const std::string& name, std::int64_t low, std::int64_t high
) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_integer()) {
    fail(name, "must be an integer");
    return std::nullopt;
  }
  const bool too_large =
      value->is_number_unsigned() &&
      value->get<std::uint64_t>() >
          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const std::int64_t number = too_large ? high : value->get<std::int64_t>();
  if (too_large || number < low || number > high) {
    const bool open = high == std::numeric_limits<std::int64_t>::max();
    fail(
        name,
        "must be " +
            range(std::to_string(low), open ? "" : std::to_string(high))
    );
    return std::nullopt;
  }
  return number;
}

std::optional<double> FieldReader::number(
    const std::string& name, double low, double high
) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) {
    fail(name, "must be a number");
    return std::nullopt;
  }
  const double number = value->get<double>();
  if (!std::isfinite(number)) {
    fail(name, "must be a finite number");
    return std::nullopt;
  }
  if (number < low || number > high) {
    fail(
        name, "must be " + range(show(low), std::isinf(high) ? "" : show(high))
    );
    return std::nullopt;
  }
  return number;
}

std::optional<std::string> FieldReader::text(const std::string& name) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  fail(name, "must be a string");
  return std::nullopt;
}

void FieldReader::refuse(
    const std::string& name, const std::string& why, const json& harmless
) {
  const json* value = find(name);
  if (value == nullptr || *value == harmless) return;
  fail(name, why, "unsupported");
}

void FieldReader::refuse_unknown() {
  if (error_) return;
  for (const auto& [name, value] : object_.items()) {
    if (known_.contains(name)) continue;
    fail(name, "is not a field this server knows", "unknown_field");
    return;
  }
}

void FieldReader::fail(
    const std::string& name, const std::string& message, const std::string& code
) {
  if (error_) return;
  const std::string full = prefix_ + name;
  error_ = invalid_field(full, "'" + full + "' " + message, code);
}

}  // namespace afterglow
