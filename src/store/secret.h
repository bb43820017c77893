#pragma once

#include <string>

#include "base/file_system.h"

namespace afterglow {

inline constexpr std::size_t kSecretBytes = 32;

/// The random bytes in v1/secret; made, durably, when missing. Of several
/// processes that make it at once one wins and all get the same.
/// Requires: the directory v1.
/// Errors: kCorrupt when the file is not of that length; those of the file
/// system.
Result<std::string> read_or_make_secret(FileSystem& files);

}  // namespace afterglow
