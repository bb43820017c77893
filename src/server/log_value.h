#pragma once

#include <string>
#include <string_view>

namespace afterglow {

/// A value of a log line of `key=value` pairs: bare where it is one word, else
/// in quotes, with a backslash before quotes and backslashes. Other than
/// printable ASCII is written as \xHH, so that no text breaks out.
std::string log_value(std::string_view text);

/// The text with \xHH in place of control characters, so that a message stays
/// in its line.
std::string log_line(std::string_view text);

}  // namespace afterglow
