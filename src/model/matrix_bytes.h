#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/result.h"
#include "model/tensor.h"

// What the readers of weight formats share: bytes, eight of them at once, and
// errors that name a tensor.
namespace afterglow {

static_assert(std::endian::native == std::endian::little);

template <class T>
inline T load_bytes(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <class T>
inline void store_bytes(void* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

/// The same byte eight times.
constexpr std::uint64_t eight(std::uint8_t byte) {
  return byte * std::uint64_t{0x0101010101010101};
}

/// Bits [shift, shift + bits) of each of eight bytes. Requires: shift + bits
/// is at most 8.
inline std::uint64_t bits_of_eight(std::uint64_t bytes, int shift, int bits) {
  return bytes >> shift & eight(static_cast<std::uint8_t>((1 << bits) - 1));
}

/// Eight bytes below 128, each less `half` and as two's complement.
inline std::uint64_t less(std::uint64_t bytes, std::uint8_t half) {
  // The top bit is lent to the subtraction, so that it stays in its byte.
  return ((bytes | eight(128)) - eight(half)) ^ eight(128);
}

/// 0 or 1 for each of eight bits, the lowest first.
inline std::uint64_t spread_bits(std::uint8_t bits) {
  const std::uint64_t apart = eight(bits) & 0x8040201008040201;
  return (apart + eight(127)) >> 7 & eight(1);
}

inline Error corrupt_tensor(
    const std::string& where, const RawTensor& tensor, const std::string& why
) {
  return {Code::kCorrupt, where + ": tensor '" + tensor.name + "' " + why};
}

inline Error unsupported_tensor(
    const std::string& where, const RawTensor& tensor, const std::string& why
) {
  return {Code::kUnsupported, where + ": tensor '" + tensor.name + "' " + why};
}

}  // namespace afterglow
