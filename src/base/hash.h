#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace afterglow {

using Sha256Digest = std::array<std::uint8_t, 32>;

/// Incremental SHA-256 (FIPS 180-4). Identities are made of it.
/// Integers are fed little-endian; strings are fed with their length first,
/// so that no two sequences of fields give the same stream.
/// Thread: one thread at a time.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  Sha256& bytes(std::span<const std::byte> data);
  Sha256& u32(std::uint32_t value);
  Sha256& u64(std::uint64_t value);
  Sha256& text(std::string_view value);
  Sha256& digest(const Sha256Digest& value);

  /// Ends the stream; call once.
  Sha256Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// HMAC-SHA256 of message under key (RFC 2104): who lacks the key can neither
/// make it nor check a guess of the message.
Sha256Digest hmac_sha256(std::string_view key, std::string_view message);

/// Lower-case hex of bytes.
std::string hex(std::span<const std::uint8_t> bytes);

/// XXH3-64 of data: a sum against bit rot, never an identity.
/// Source: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
std::uint64_t xxh3_64(std::span<const std::byte> data);

/// XXH3-128 of data in canonical (big-endian) byte order.
std::array<std::uint8_t, 16> xxh3_128(std::span<const std::byte> data);

}  // namespace afterglow
