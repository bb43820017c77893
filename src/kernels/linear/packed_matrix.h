#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/linear/matrix_source.h"

namespace afterglow {

/// A weight matrix as the kernels read it: 16 output rows side by side, a
/// row in each lane. The last rows are padded with zeros.
///
/// Affine: a row block is a run of blocks of block_inputs inputs: a group, or
/// two where groups have 16. Each is
///   scales [groups][16] of `type`, biases [groups][16] of `type` where
///   has_bias, then for each 32 inputs the codes:
///   8 bits: [8][16 rows][4 inputs] bytes, vector j holding inputs 4j..4j+3;
///   4 bits: [4][16 rows][4] bytes, vector j holding inputs 4j..4j+3 in the
///   low halves and 16+4j..16+4j+3 in the high halves.
/// Codes are unsigned; the weight is scale * (code - offset) + bias, with
/// offset 0 where there is a bias. Where has_values, a code of 4 bits stands
/// for values[code].
///
/// Dense: a row block is [cols][16] elements of `type`.
struct PackedMatrix {
  std::size_t rows = 0;
  std::size_t cols = 0;
  int bits = 0;  // 4 or 8; 0: dense
  ElementType type = ElementType::kF32;
  std::size_t element_bytes = 4;  // of type
  std::size_t group = 0;
  std::size_t block_inputs = 0;  // the larger of group and 32
  std::size_t block_groups = 0;  // 1, or 2 where groups have 16
  bool has_bias = false;
  bool has_values = false;
  std::uint8_t values[16] = {};  // those of codes themselves if not has_values
  std::int32_t most = 0;         // the largest code or value
  std::int32_t offset = 0;
  std::size_t header_bytes = 0;     // of a block: scales and biases
  std::size_t block_bytes = 0;      // of a block
  std::size_t row_block_bytes = 0;  // of 16 rows
  std::size_t row_blocks = 0;
  const std::byte* data = nullptr;

  static constexpr std::size_t kRows = 16;
  static constexpr std::size_t kInputs = 32;
};

}  // namespace afterglow
