#include "model/json.h"

#include <cmath>
#include <set>
#include <stdexcept>
#include <vector>

namespace afterglow {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 64;
constexpr std::int64_t kMaxCount = std::int64_t{1} << 31;

// Leaves nlohmann's parser from inside its callback.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace

Result<json> parse_json(std::string_view text, const std::string& where) {
  std::vector<std::set<std::string>> keys;
  const auto check = [&keys](
                         int depth, json::parse_event_t event, json& value
                     ) {
    if (event == json::parse_event_t::object_start ||
        event == json::parse_event_t::array_start) {
      if (depth >= kMaxDepth) {
        throw Refused("nested deeper than " + std::to_string(kMaxDepth));
      }
      keys.emplace_back();
    } else if (event == json::parse_event_t::object_end || event == json::parse_event_t::array_end) {
      keys.pop_back();
    } else if (event == json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!keys.back().insert(key).second) {
        throw Refused("duplicate key '" + key + "'");
      }
    }
    return true;
  };
  try {
    return json::parse(text, check);
  } catch (const Refused& refused) {
    return Error{Code::kCorrupt, where + ": " + refused.what()};
  } catch (const json::exception& error) {
    return Error{Code::kCorrupt, where + ": not valid JSON: " + error.what()};
  }
}

JsonFields::JsonFields(const json& object, std::string where)
    : object_(object), where_(std::move(where)) {
  if (!object_.is_object()) {
    status_ = Error{Code::kCorrupt, where_ + ": not a JSON object"};
  }
}

const json* JsonFields::find(const char* name) const {
  if (!object_.is_object()) {
    return nullptr;
  }
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool JsonFields::has(const char* name) const {
  return find(name) != nullptr;
}

void JsonFields::fail(
    Code code, const std::string& name, const std::string& why
) {
  if (status_.ok()) {
    status_ = Error{code, where_ + ": field '" + name + "' " + why};
  }
}

std::size_t JsonFields::count(const char* name) {
  const json* value = find(name);
  if (value == nullptr) {
    fail(Code::kCorrupt, name, "is missing");
    return 1;
  }
  const bool in_range = value->is_number_integer() &&
                        value->get<double>() > 0 &&
                        value->get<double>() < double(kMaxCount);
  if (!in_range) {
    fail(
        Code::kCorrupt, name, "must be a positive integer, is " + value->dump()
    );
    return 1;
  }
  return value->get<std::size_t>();
}

std::size_t JsonFields::count(const char* name, std::size_t fallback) {
  return has(name) ? count(name) : fallback;
}

double JsonFields::number(const char* name) {
  const json* value = find(name);
  if (value == nullptr) {
    fail(Code::kCorrupt, name, "is missing");
    return 1;
  }
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    fail(Code::kCorrupt, name, "must be a number, is " + value->dump());
    return 1;
  }
  return value->get<double>();
}

double JsonFields::number(const char* name, double fallback) {
  return has(name) ? number(name) : fallback;
}

bool JsonFields::boolean(const char* name, bool fallback) {
  const json* value = find(name);
  if (value == nullptr) {
    return fallback;
  }
  if (!value->is_boolean()) {
    fail(Code::kCorrupt, name, "must be true or false, is " + value->dump());
    return fallback;
  }
  return value->get<bool>();
}

std::string JsonFields::text(const char* name) {
  const json* value = find(name);
  if (value == nullptr) {
    fail(Code::kCorrupt, name, "is missing");
    return {};
  }
  if (!value->is_string()) {
    fail(Code::kCorrupt, name, "must be a string, is " + value->dump());
    return {};
  }
  return value->get<std::string>();
}

std::string JsonFields::text(const char* name, const std::string& fallback) {
  return has(name) ? text(name) : fallback;
}

}  // namespace afterglow
