#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace afterglow {

/// A tensor as a weight file holds it. `bytes` points into the file.
struct RawTensor {
  std::string name;
  std::string dtype;                 // "F32", "BF16", "U32", "Q4_1"
  std::vector<std::uint64_t> shape;  // outermost first; rows of a matrix first
  std::span<const std::byte> bytes;
};

/// "[3, 4]", for messages and identities.
std::string describe_shape(std::span<const std::uint64_t> shape);

/// a * b, or nothing where it does not fit.
inline std::optional<std::uint64_t> checked_multiply(
    std::uint64_t a, std::uint64_t b
) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    return std::nullopt;
  }
  return product;
}

}  // namespace afterglow
