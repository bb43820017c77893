#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace afterglow {

/// Element types that weights, scales and biases come in.
enum class ElementType : std::uint8_t { kF32, kF16, kBF16 };

/// Bytes of one element.
inline std::size_t size_of(ElementType type) {
  return type == ElementType::kF32 ? 4 : 2;
}

/// What 4-bit codes stand for where they are not numbers themselves.
using CodeValues = std::array<std::int8_t, 16>;

/// A matrix [rows, cols] as a weight file holds it, in a form that no longer
/// knows the file's format. Backends repack it while loading.
///
/// Dense: element (r, c) is a `type`.
/// Affine: element (r, c) = scale * code + bias of group (r, c / group); codes
/// are unsigned of `bits` bits, or, where signed_codes, from -2^(bits - 1) on,
/// as bytes in two's complement. Without has_bias the bias is zero. Scales and
/// biases are `type`. With `values`, values[code] takes the place of a code,
/// which is of 4 bits, and there is no bias.
struct MatrixSource {
  std::size_t rows = 0;
  std::size_t cols = 0;
  ElementType type = ElementType::kF32;
  int bits = 0;  // 0: dense
  std::size_t group = 0;
  bool signed_codes = false;
  bool has_bias = false;
  const CodeValues* values = nullptr;  // of static life

  /// Decodes rows [first, first + count).
  /// Dense: `codes` receives count x cols elements of `type`; `scales` and
  /// `biases` are null. Affine: `codes` receives count x cols bytes, one code
  /// each; `scales` and (where has_bias) `biases` count x cols / group
  /// elements of `type`. Thread: callable from several threads at once.
  std::function<void(
      std::size_t first,
      std::size_t count,
      void* codes,
      void* scales,
      void* biases
  )>
      read;
};

}  // namespace afterglow
