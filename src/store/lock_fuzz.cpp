// Any bytes as the line in v1/lock: refused, or exactly what format_disk_state
// writes.

#include <cstdlib>

#include "base/hash.h"
#include "store/disk_lock.h"

namespace {

void check(std::string_view text) {
  auto state = afterglow::parse_disk_state(text);
  if (state && afterglow::format_disk_state(*state) != text) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) {
  std::string text(reinterpret_cast<const char*>(data), n);
  check(text);
  // With the sum made right, so that the fields are looked at.
  constexpr std::size_t kDigits = 16;
  if (n > kDigits + 1) {
    std::size_t end = n - kDigits - 1;
    std::uint64_t sum =
        afterglow::xxh3_64(std::as_bytes(std::span(text.data(), end)));
    for (std::size_t i = 0; i < kDigits; ++i) {
      text[end + i] = "0123456789abcdef"[(sum >> (60 - 4 * i)) & 15];
    }
    text.back() = '\n';
    check(text);
  }
  return 0;
}
