#pragma once

#include <string>

#include "base/result.h"

namespace afterglow {

/// All of a text file of up to 256 MiB. Errors: kNotFound, kPermission, kIo,
/// kInvalidArgument where it is no regular file or larger.
Result<std::string> read_text_file(const std::string& path);

}  // namespace afterglow
