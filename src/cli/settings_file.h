#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace afterglow {

/// What a file says about one flag.
struct Setting {
  std::string key;
  std::vector<std::string> values;  // strings decoded, all else as written
  bool list = false;                // else there is one value
  std::size_t line = 0;             // from 1
};

/// Parses a file of flags: TOML without tables, dotted keys and dates. Each
/// statement is `key = value`, the value a string, a decimal number, true,
/// false, or a list of these.
/// Errors: kInvalidArgument; the message begins with the line's number.
/// Source: https://toml.io/en/v1.0.0
Result<std::vector<Setting>> parse_settings(std::string_view text);

/// The value as parse_settings reads it: bare where it is a number, true or
/// false, else a string in quotes.
std::string setting_value(std::string_view value);

}  // namespace afterglow
