#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace afterglow {

/// The real model's file that tests use: AFTERGLOW_MODEL, else the one the
/// build was configured with. Throws, which fails the test, where neither is
/// set.
inline std::string test_model_path() {
  if (const char* path = std::getenv("AFTERGLOW_MODEL")) {
    return path;
  }
  const std::string built_in = AFTERGLOW_DEFAULT_MODEL;
  if (built_in.empty()) {
    throw std::runtime_error(
        "no model to test with: set AFTERGLOW_MODEL or configure with "
        "-DAFTERGLOW_DEFAULT_MODEL=<file.gguf>"
    );
  }
  return built_in;
}

}  // namespace afterglow
