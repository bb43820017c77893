#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/linear/activations.h"
#include "kernels/linear/packed_matrix.h"

namespace afterglow {

/// y = x W^T + bias for row blocks [first_block, last_block) of an affine
/// weight and rounded inputs. Over the weight's blocks ascending, in each lane:
///   y = fma(weight_scale, input_scale * float(sum of code * q), y)
///   for each 32 inputs, or 16 where groups have 16, then
///   y = fma(weight_bias, sum of inputs, y)
///   for each group of the block; at last y + bias.
struct LinearInt {
  const PackedMatrix* weight;
  CodeForm form;
  const std::int8_t* codes;  // tiles of `tokens` tokens
  const InputGroup* groups;
  std::size_t tokens;
  std::size_t first_block, last_block;
  float* y;  // row r of token t goes to y[t * y_step + r]
  std::size_t y_step;
  const float* bias;  // [rows] or null
};

/// The same for exact inputs: w is the weight in f32 (scale * code + bias
/// with one rounding), y = fma(w, x, y) over inputs ascending, at last
/// y + bias.
struct LinearF32 {
  const PackedMatrix* weight;
  const float* x;
  std::size_t x_step;
  std::size_t tokens;
  std::size_t first_block, last_block;
  float* y;
  std::size_t y_step;
  const float* bias;
  /// [kLinearBlocks * cols * 16], used where the weight is affine.
  float* panel;
};

/// Row blocks that LinearF32 takes at once.
inline constexpr std::size_t kLinearBlocks = 4;

}  // namespace afterglow
