#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace afterglow::tool_parsers {

/// A text's words as a POSIX shell tells them apart: quotes and backslashes
/// join, nothing is expanded. Nothing when a quote or escape has no end.
std::optional<std::vector<std::string>> shell_words(std::string_view text);

}  // namespace afterglow::tool_parsers
