#include <cmath>
#include <cstring>

#include "model/gguf.h"

namespace afterglow {
namespace {

constexpr std::int64_t kMaxCount = std::int64_t{1} << 31;

template <class T>
T load(std::span<const std::byte> bytes, std::uint64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

// Element `index` of a value or array as an integer, if it is one.
std::optional<std::int64_t> as_integer(
    GgufType type, std::span<const std::byte> bytes, std::uint64_t index
) {
  switch (type) {
    case GgufType::kU8:
      return load<std::uint8_t>(bytes, index);
    case GgufType::kI8:
      return load<std::int8_t>(bytes, index);
    case GgufType::kU16:
      return load<std::uint16_t>(bytes, index);
    case GgufType::kI16:
      return load<std::int16_t>(bytes, index);
    case GgufType::kU32:
      return load<std::uint32_t>(bytes, index);
    case GgufType::kI32:
      return load<std::int32_t>(bytes, index);
    case GgufType::kI64:
      return load<std::int64_t>(bytes, index);
    case GgufType::kU64: {
      const auto value = load<std::uint64_t>(bytes, index);
      if (value > std::uint64_t(INT64_MAX)) {
        return std::nullopt;
      }
      return static_cast<std::int64_t>(value);
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> as_number(
    GgufType type, std::span<const std::byte> bytes, std::uint64_t index
) {
  if (type == GgufType::kF32) {
    return load<float>(bytes, index);
  }
  if (type == GgufType::kF64) {
    return load<double>(bytes, index);
  }
  const auto integer = as_integer(type, bytes, index);
  return integer ? std::optional<double>(double(*integer)) : std::nullopt;
}

}  // namespace

GgufFields::GgufFields(const Gguf& gguf, std::string where)
    : gguf_(gguf), where_(std::move(where)) {}

const GgufValue* GgufFields::find(const std::string& key) const {
  const auto found = gguf_.metadata.find(key);
  return found == gguf_.metadata.end() ? nullptr : &found->second;
}

void GgufFields::fail(
    Code code, const std::string& key, const std::string& why
) {
  if (status_.ok()) {
    status_ = Error{code, where_ + ": metadata '" + key + "' " + why};
  }
}

std::size_t GgufFields::count(const std::string& key) {
  const GgufValue* value = find(key);
  if (value == nullptr) {
    fail(Code::kCorrupt, key, "is missing");
    return 1;
  }
  const bool array = value->type == GgufType::kArray;
  const GgufType type = array ? value->element : value->type;
  const auto first =
      value->count > 0 ? as_integer(type, value->bytes, 0) : std::nullopt;
  if (!first || *first <= 0 || *first >= kMaxCount) {
    fail(Code::kCorrupt, key, "must be a positive integer");
    return 1;
  }
  for (std::uint64_t i = 1; i < value->count; ++i) {
    if (as_integer(type, value->bytes, i) != first) {
      fail(Code::kUnsupported, key, "differs from layer to layer");
      return 1;
    }
  }
  return static_cast<std::size_t>(*first);
}

std::size_t GgufFields::count(const std::string& key, std::size_t fallback) {
  return has(key) ? count(key) : fallback;
}

std::optional<std::int64_t> GgufFields::integer(const std::string& key) {
  const GgufValue* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  const auto result = as_integer(value->type, value->bytes, 0);
  if (!result) {
    fail(Code::kCorrupt, key, "must be an integer");
  }
  return result;
}

double GgufFields::number(const std::string& key) {
  const GgufValue* value = find(key);
  if (value == nullptr) {
    fail(Code::kCorrupt, key, "is missing");
    return 1;
  }
  const auto result = as_number(value->type, value->bytes, 0);
  if (!result || !std::isfinite(*result)) {
    fail(Code::kCorrupt, key, "must be a finite number");
    return 1;
  }
  return *result;
}

double GgufFields::number(const std::string& key, double fallback) {
  return has(key) ? number(key) : fallback;
}

std::optional<bool> GgufFields::boolean(const std::string& key) {
  const GgufValue* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (value->type != GgufType::kBool) {
    fail(Code::kCorrupt, key, "must be a boolean");
    return std::nullopt;
  }
  return value->bytes[0] == std::byte{1};
}

std::string GgufFields::text(const std::string& key) {
  const GgufValue* value = find(key);
  if (value == nullptr) {
    fail(Code::kCorrupt, key, "is missing");
    return {};
  }
  if (value->type != GgufType::kString) {
    fail(Code::kCorrupt, key, "must be a string");
    return {};
  }
  return std::string(value->strings[0]);
}

std::string GgufFields::text(
    const std::string& key, const std::string& fallback
) {
  return has(key) ? text(key) : fallback;
}

std::vector<std::string> GgufFields::texts(const std::string& key) {
  const GgufValue* value = find(key);
  if (value == nullptr) {
    return {};
  }
  if (value->type != GgufType::kArray || value->element != GgufType::kString) {
    fail(Code::kCorrupt, key, "must be an array of strings");
    return {};
  }
  return {value->strings.begin(), value->strings.end()};
}

std::vector<float> GgufFields::floats(const std::string& key) {
  const GgufValue* value = find(key);
  if (value == nullptr) {
    return {};
  }
  if (value->type != GgufType::kArray || value->element != GgufType::kF32) {
    fail(Code::kCorrupt, key, "must be an array of f32");
    return {};
  }
  std::vector<float> result;
  for (std::uint64_t i = 0; i < value->count; ++i) {
    result.push_back(load<float>(value->bytes, i));
  }
  return result;
}

std::vector<std::int32_t> GgufFields::integers(const std::string& key) {
  const GgufValue* value = find(key);
  if (value == nullptr) {
    return {};
  }
  const bool fits =
      value->type == GgufType::kArray &&
      (value->element == GgufType::kI32 || value->element == GgufType::kU32);
  if (!fits) {
    fail(Code::kCorrupt, key, "must be an array of i32");
    return {};
  }
  std::vector<std::int32_t> result;
  for (std::uint64_t i = 0; i < value->count; ++i) {
    result.push_back(load<std::int32_t>(value->bytes, i));
  }
  return result;
}

}  // namespace afterglow
