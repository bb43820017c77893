#pragma once

#include <string>

namespace afterglow {

/// Whether this is a file that others than its owner may read or change.
bool is_exposed(const std::string& path);

}  // namespace afterglow
