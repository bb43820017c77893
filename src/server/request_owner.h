#pragma once

#include <string>

namespace afterglow {

/// Whose request it is. Fields as GenerationRequest's.
struct RequestOwner {
  std::string cache_namespace;
  std::string client;
};

}  // namespace afterglow
