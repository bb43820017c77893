#pragma once

#include <cstddef>
#include <vector>

#include "kernels/dispatch/dispatch.h"
#include "kernels/linear/linear.h"
#include "kernels/testing/guarded.h"

namespace afterglow::test {

/// Inputs rounded for a weight, in a table's layout.
struct RoundedInputs {
  CodeForm form;
  std::vector<std::int8_t> codes;
  std::vector<InputGroup> groups;
};

inline RoundedInputs round_inputs(
    const Kernels& kernels,
    const PackedMatrix& w,
    const float* x,
    std::size_t tokens,
    std::int32_t levels
) {
  RoundedInputs in;
  in.form = kernels.code_form(w, levels);
  std::size_t units = w.cols / 32;
  std::size_t groups = units * w.block_groups;
  std::size_t unit = code_bytes(in.form);
  in.codes.resize(tokens * units * unit);
  in.groups.resize(tokens * groups);
  for (std::size_t start = 0; start < tokens;) {
    std::size_t size = tile_size(tokens - start, kernels.token_tile);
    for (std::size_t t = 0; t < size; ++t) {
      kernels.quantize({
          .x = x + (start + t) * w.cols,
          .cols = w.cols,
          .weight_group = w.group,
          .weight_offset = w.offset,
          .levels = levels,
          .form = in.form,
          .codes = in.codes.data() + (start * units + t) * unit,
          .code_step = size * unit,
          .groups = in.groups.data() + start * groups + t,
          .group_step = size,
      });
    }
    start += size;
  }
  return in;
}

/// y [tokens][rows] by the integer kernels.
inline std::vector<float> linear_int(
    const Kernels& kernels,
    const PackedMatrix& w,
    const std::vector<float>& x,
    std::size_t tokens,
    std::int32_t levels,
    const float* bias
) {
  RoundedInputs in = round_inputs(kernels, w, x.data(), tokens, levels);
  Guarded<float> y(tokens * w.rows);
  kernels.linear_int({
      .weight = &w,
      .form = in.form,
      .codes = in.codes.data(),
      .groups = in.groups.data(),
      .tokens = tokens,
      .first_block = 0,
      .last_block = w.row_blocks,
      .y = y.data(),
      .y_step = w.rows,
      .bias = bias,
  });
  return y.copy();
}

/// y [tokens][rows] by the f32 kernels.
inline std::vector<float> linear_f32(
    const Kernels& kernels,
    const PackedMatrix& w,
    const std::vector<float>& x,
    std::size_t tokens,
    const float* bias
) {
  std::vector<float> panel(kLinearBlocks * w.cols * 16);
  Guarded<float> inputs(x);
  Guarded<float> y(tokens * w.rows);
  kernels.linear_f32({
      .weight = &w,
      .x = inputs.data(),
      .x_step = w.cols,
      .tokens = tokens,
      .first_block = 0,
      .last_block = w.row_blocks,
      .y = y.data(),
      .y_step = w.rows,
      .bias = bias,
      .panel = panel.data(),
  });
  return y.copy();
}

}  // namespace afterglow::test
