#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/linear/matrix_source.h"

namespace afterglow {

/// A weight matrix as the kernels read it: 16 output rows side by side, a
/// row in each lane. The last rows are padded with zeros.
///
/// Affine: a row block is a run of group blocks, each
///   scales [16] of `type`, biases [16] of `type` where has_bias,
///   then for each 32 inputs of the group the codes:
///   8 bits: [8][16 rows][4 inputs] bytes, vector j holding inputs 4j..4j+3;
///   4 bits: [4][16 rows][4] bytes, vector j holding inputs 4j..4j+3 in the
///   low halves and 16+4j..16+4j+3 in the high halves.
/// Codes are unsigned; the weight is scale * (code - offset) + bias, with
/// offset 0 where there is a bias.
///
/// Dense: a row block is [cols][16] elements of `type`.
struct PackedMatrix {
  std::size_t rows = 0;
  std::size_t cols = 0;
  int bits = 0;  // 0: dense
  ElementType type = ElementType::kF32;
  std::size_t element_bytes = 4;  // of type
  std::size_t group = 0;
  bool has_bias = false;
  std::int32_t offset = 0;
  std::size_t header_bytes = 0;     // of a group block: scales and biases
  std::size_t block_bytes = 0;      // of a group block
  std::size_t row_block_bytes = 0;  // of 16 rows
  std::size_t row_blocks = 0;
  const std::byte* data = nullptr;

  static constexpr std::size_t kRows = 16;
  static constexpr std::size_t kInputs = 32;
};

}  // namespace afterglow
