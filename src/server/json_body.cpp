#include "server/json_body.h"

#include <nlohmann/json.hpp>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace afterglow {
namespace {

using json = nlohmann::ordered_json;

struct JsonFault {
  std::string message;
  std::string member;  // that is named twice; "": it is something else
};

/// Builds the value without recursion, and without the linear search for each
/// new member that ordered_json's own operator[] makes.
class Builder : public nlohmann::json_sax<json> {
 public:
  Builder(const JsonLimits& limits, json& root)
      : limits_(limits), root_(root) {}

  std::string problem;
  std::string member;  // at fault, if it is one

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override {
    return add(value);
  }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return fail("binary value"); }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Frame& frame = stack_.back();
    if (!count()) return false;
    if (!frame.names.insert(name).second) {
      member = path() + name;
      return fail("member \"" + name + "\" appears twice in one object");
    }
    frame.key = std::move(name);
    return true;
  }

  bool parse_error(
      std::size_t position,
      const std::string&,
      const nlohmann::detail::exception& error
  ) override {
    // The library's text quotes the input: keep the reason's last part only.
    const std::string text = error.what();
    const std::size_t cut = text.find("; last read");
    const std::size_t start = text.find(": ");
    const std::size_t begin = start == std::string::npos ? 0 : start + 2;
    std::string reason =
        text.substr(begin, cut == std::string::npos ? cut : cut - begin);
    return fail(
        "the body is not valid JSON at byte " + std::to_string(position) +
        ": " + reason
    );
  }

 private:
  struct Frame {
    json* value;
    std::string key;
    std::unordered_set<std::string> names;
  };

  bool fail(std::string what) {
    problem = std::move(what);
    return false;
  }

  /// Of the innermost object, as "messages[0].", but "" for the outermost.
  std::string path() const {
    std::string path;
    for (std::size_t i = 0; i + 1 < stack_.size(); ++i) {
      const json& value = *stack_[i].value;
      if (value.is_array()) {
        path += "[" + std::to_string(value.size() - 1) + "]";
      } else {
        // The member whose value is open is the last.
        const auto& object = value.get_ref<const json::object_t&>();
        path += (path.empty() ? "" : ".") + object.back().first;
      }
    }
    return path.empty() ? path : path + ".";
  }

  bool count() {
    if (++values_ <= limits_.values) return true;
    return fail(
        "the body holds more than " + std::to_string(limits_.values) +
        " JSON values"
    );
  }

  json* place(json value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Frame& frame = stack_.back();
    if (frame.value->is_array()) {
      auto& array = frame.value->get_ref<json::array_t&>();
      array.push_back(std::move(value));
      return &array.back();
    }
    auto& object = frame.value->get_ref<json::object_t&>();
    using Members = json::object_t::Container;
    auto& members = static_cast<Members&>(object);
    members.emplace_back(std::move(frame.key), std::move(value));
    return &members.back().second;
  }

  template <class T>
  bool add(T&& value) {
    if (!count()) return false;
    place(json(std::forward<T>(value)));
    return true;
  }

  bool open(json value) {
    if (!count()) return false;
    if (stack_.size() >= limits_.depth) {
      return fail(
          "the body is nested deeper than " + std::to_string(limits_.depth) +
          " levels"
      );
    }
    json* placed = place(std::move(value));
    stack_.push_back({placed, {}, {}});
    return true;
  }

  bool close() {
    stack_.pop_back();
    return true;
  }

  const JsonLimits& limits_;
  json& root_;
  // A frame's value stays put: only the innermost container grows.
  std::vector<Frame> stack_;
  std::size_t values_ = 0;
};

std::variant<json, JsonFault> parse_json_text(
    std::string_view text, const JsonLimits& limits
) {
  if (text.empty()) return JsonFault{"the body is empty; send a JSON object"};
  json root;
  Builder builder(limits, root);
  if (!json::sax_parse(text.begin(), text.end(), &builder)) {
    return JsonFault{std::move(builder.problem), std::move(builder.member)};
  }
  return root;
}

}  // namespace

Result<json> parse_json_body(std::string_view text, const JsonLimits& limits) {
  auto parsed = parse_json_text(text, limits);
  if (auto* fault = std::get_if<JsonFault>(&parsed)) {
    return Error{Code::kInvalidArgument, "[http.json] " + fault->message};
  }
  return std::get<json>(std::move(parsed));
}

std::variant<nlohmann::ordered_json, ApiError> parse_json_object(
    std::string_view text, const JsonLimits& limits, BodyIs body
) {
  const bool optional = body == BodyIs::kOptional;
  if (optional && text.find_first_not_of(" \t\r\n") == text.npos) {
    return json::object();
  }
  auto parsed = parse_json_text(text, limits);
  if (auto* fault = std::get_if<JsonFault>(&parsed)) {
    return invalid_field(
        std::move(fault->member), std::move(fault->message), "invalid_json"
    );
  }
  json& value = std::get<json>(parsed);
  if (optional && value.is_null()) return json::object();
  if (!value.is_object()) {
    return invalid_field("", "the body must be a JSON object", "invalid_json");
  }
  return std::move(value);
}

}  // namespace afterglow
