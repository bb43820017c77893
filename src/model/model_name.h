#pragma once

#include <string>

namespace afterglow {

/// What a model goes by: the name of its directory, or of its GGUF file
/// without the ending. In the Hugging Face hub's cache, where directories are
/// named by commits and files are links to sums, a directory goes by the
/// hub's name, `organization/name`.
std::string model_name(const std::string& path);

}  // namespace afterglow
