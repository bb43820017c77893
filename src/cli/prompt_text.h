#pragma once

#include <string>

namespace afterglow {

/// \n and \t as mlx_lm lets a prompt on the command line say them; all else
/// stays.
std::string unescape(const std::string& text);

/// All of standard input.
std::string read_standard_input();

}  // namespace afterglow
