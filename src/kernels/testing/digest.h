#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace afterglow::test {

/// FNV-1a over everything added: tells whether bits changed, in builds that
/// have no hash library, too.
class Digest {
 public:
  void add(std::span<const std::byte> bytes) {
    for (std::byte byte : bytes) {
      state_ = (state_ ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3u;
    }
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325u;
};

}  // namespace afterglow::test
