#include "text/tool_parsers/value.h"

#include <algorithm>
#include <cstdio>

#include "text/tool_parsers/literal.h"

namespace afterglow::tool_parsers {
namespace {

/// Tells for each byte of JSON text whether it is inside a string.
class StringTracker {
 public:
  bool inside(char c) {
    const bool was = inside_;
    if (escaped_) {
      escaped_ = false;
    } else if (was && c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      inside_ = !inside_;
    }
    return was && inside_;
  }

 private:
  bool inside_ = false;
  bool escaped_ = false;
};

/// Bytes up to the bracket that closes the first one; 0 when there is none.
std::size_t bracketed_size(std::string_view text) {
  StringTracker strings;
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (strings.inside(c)) {
      continue;
    }
    if (c == '[' || c == '{') {
      ++depth;
    } else if ((c == ']' || c == '}') && --depth == 0) {
      return i + 1;
    }
  }
  return 0;
}

std::size_t digits_size(std::string_view text) {
  const auto end =
      std::ranges::find_if(text, [](char c) { return c < '0' || c > '9'; });
  return static_cast<std::size_t>(end - text.begin());
}

/// Bytes of the longest number at the start; 0 when there is none.
std::size_t number_size(std::string_view text) {
  std::size_t size = text.starts_with('-') ? 1 : 0;
  const auto whole = digits_size(text.substr(size));
  if (whole == 0) {
    return 0;
  }
  size += text[size] == '0' ? 1 : whole;
  if (text.substr(size).starts_with('.')) {
    const auto part = digits_size(text.substr(size + 1));
    size += part == 0 ? 0 : part + 1;
  }
  if (size < text.size() && (text[size] == 'e' || text[size] == 'E')) {
    const auto rest = text.substr(size + 1);
    const std::size_t sign = rest.starts_with('+') || rest.starts_with('-');
    const auto exponent = digits_size(rest.substr(sign));
    size += exponent == 0 ? 0 : 1 + sign + exponent;
  }
  return size;
}

std::size_t string_size(std::string_view text) {
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i + 1;
    }
  }
  return 0;
}

std::size_t value_size(std::string_view text) {
  for (const std::string_view word : {"true", "false", "null"}) {
    if (text.starts_with(word)) {
      return word.size();
    }
  }
  if (text.starts_with('{') || text.starts_with('[')) {
    return bracketed_size(text);
  }
  return text.starts_with('"') ? string_size(text) : number_size(text);
}

bool too_deep(std::string_view text) {
  StringTracker strings;
  std::size_t depth = 0;
  for (const char c : text) {
    if (strings.inside(c)) {
      continue;
    }
    if (c == '[' || c == '{') {
      ++depth;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
    if (depth > kDeepest) {
      return true;
    }
  }
  return false;
}

std::string python_repr(std::string_view text) {
  const bool doubled =
      text.find('\'') != text.npos && text.find('"') == text.npos;
  const char quote = doubled ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == quote || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\x%02x", byte);
      out += escape;
    } else {
      out += c;
    }
  }
  return out + quote;
}

std::string repr(const Json& value) {
  return value.is_string() ? python_repr(value.get_ref<const std::string&>())
                           : python_str(value);
}

/// The members of an array or object as `write` gives them, in brackets.
template <class Key, class Value>
std::string joined(const Json& value, Key key, Value write) {
  std::string out = value.is_object() ? "{" : "[";
  for (const auto& item : value.items()) {
    out += out.size() > 1 ? ", " : "";
    out += value.is_object() ? key(item.key()) + ": " : "";
    out += write(item.value());
  }
  return out + (value.is_object() ? "}" : "]");
}

std::string dump_scalar(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::optional<Json> parse_json(std::string_view text) {
  if (too_deep(text)) {
    return {};
  }
  auto value = Json::parse(text, nullptr, false);
  return value.is_discarded() ? std::nullopt : std::optional(std::move(value));
}

std::optional<Json> parse_json_with_controls(std::string_view text) {
  StringTracker strings;
  std::string strict;
  for (const char c : text) {
    const bool inside = strings.inside(c);
    if (inside && static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", c);
      strict += escape;
    } else {
      strict += c;
    }
  }
  return parse_json(strict);
}

std::optional<std::pair<Json, std::size_t>> parse_json_prefix(
    std::string_view text
) {
  const auto size = value_size(text);
  auto value = parse_json(text.substr(0, size));
  if (!value) {
    return {};
  }
  return std::pair(*std::move(value), size);
}

Json guess_value(std::string_view text) {
  if (auto value = parse_json(text)) {
    return *std::move(value);
  }
  if (auto value = python_literal(text)) {
    return *std::move(value);
  }
  return text;
}

std::string python_str(const Json& value) {
  if (value.is_string()) {
    return value.get<std::string>();
  }
  if (value.is_boolean()) {
    return value.get<bool>() ? "True" : "False";
  }
  if (value.is_null()) {
    return "None";
  }
  return value.is_structured() ? joined(value, python_repr, repr)
                               : dump_scalar(value);
}

std::string dump(const Json& value) {
  const auto key = [](const std::string& name) { return dump_scalar(name); };
  return value.is_structured() ? joined(value, key, dump) : dump_scalar(value);
}

ToolCall make_call(std::string_view name, const Json& arguments) {
  return {.name = std::string(name), .arguments = dump(arguments)};
}

bool has_type(
    const Json& properties, std::string_view parameter, std::string_view type
) {
  const auto schema = properties.find(std::string(parameter));
  if (schema == properties.end() || !schema->is_object()) {
    return false;
  }
  const auto named = schema->find("type");
  return named != schema->end() && *named == type;
}

}  // namespace afterglow::tool_parsers
