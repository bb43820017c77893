#pragma once

#include <string>

namespace afterglow {

/// Prints the broken invariant and aborts.
[[noreturn]] void check_failed(
    const char* file, int line, const char* condition, const std::string& what
);

}  // namespace afterglow

/// Aborts when an invariant of ours is broken; on in release. Never depends
/// on bytes from disk, network or another process: those give a Result.
#define CHECK(condition, ...)                                        \
  do {                                                               \
    if (!(condition)) [[unlikely]] {                                 \
      ::afterglow::check_failed(                                     \
          __FILE__, __LINE__, #condition, ::std::string(__VA_ARGS__) \
      );                                                             \
    }                                                                \
  } while (false)
