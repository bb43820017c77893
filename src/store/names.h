#pragma once

#include <string>

namespace afterglow::names {

// The directory's layout, relative to its root.

inline constexpr const char* kVersion = "v1";
inline constexpr const char* kTemporary = "v1/tmp";
inline constexpr const char* kLock = "v1/lock";
inline constexpr const char* kSecret = "v1/secret";
inline constexpr const char* kManifest = "v1/manifest.json";

/// A model's folder, by ModelKey::folder().
inline std::string model(const std::string& folder) {
  return std::string(kVersion) + "/" + folder;
}
inline std::string blocks(const std::string& folder) {
  return model(folder) + "/blocks";
}

}  // namespace afterglow::names
