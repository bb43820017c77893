#include "base/utf8.h"

#include <cstddef>

namespace afterglow {
namespace {

bool between(unsigned char byte, unsigned low, unsigned high) {
  return byte >= low && byte <= high;
}

/// Bytes of the character that begins here; 0: none does.
std::size_t character_size(std::string_view at) {
  const auto byte = [at](std::size_t i) {
    return i < at.size() ? static_cast<unsigned char>(at[i]) : 0U;
  };
  const auto follows = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      if (!between(byte(i), 0x80, 0xBF)) return false;
    }
    return true;
  };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (between(first, 0xC2, 0xDF)) return follows(1, 2) ? 2 : 0;
  if (between(first, 0xE0, 0xEF)) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = first == 0xED ? 0x9F : 0xBF;
    return between(byte(1), low, high) && follows(2, 3) ? 3 : 0;
  }
  if (between(first, 0xF0, 0xF4)) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80;
    const unsigned high = first == 0xF4 ? 0x8F : 0xBF;
    return between(byte(1), low, high) && follows(2, 4) ? 4 : 0;
  }
  return 0;
}

}  // namespace

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t size = character_size(bytes);
    if (size == 0) return false;
    bytes.remove_prefix(size);
  }
  return true;
}

}  // namespace afterglow
