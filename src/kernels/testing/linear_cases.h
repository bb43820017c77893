#pragma once

#include <algorithm>

#include "kernels/testing/kernel_case.h"
#include "kernels/testing/linear.h"
#include "kernels/testing/matrix.h"

namespace afterglow::test {

template <>
struct KernelCase<&Kernels::quantize> {
  static void run(
      const Kernels& k, std::size_t n, Random& random, Output& out
  ) {
    std::size_t units = n;
    for (CodeForm form :
         {CodeForm::kBytes, CodeForm::kHighLow, CodeForm::kWords}) {
      std::size_t weight_group = std::size_t{16} << random.below(3);
      if (weight_group > 32 && units % 2 == 1) weight_group = 32;
      std::size_t parts = weight_group == 16 ? 2 : 1;
      std::size_t bytes = code_bytes(form);
      std::int32_t levels = form == CodeForm::kBytes || random.below(2) == 0
                                ? kInt8Levels
                                : kInt16Levels;
      std::vector<float> values = wide_floats(units * 32, random);
      // A group of zeros, one too small for a scale, one of a single outlier.
      for (std::size_t i = 0; i < 32; ++i) {
        if (units > 2) values[32 + i] = 0;
        if (units > 3) values[64 + i] *= 0x1p-120f;
        if (units > 4) values[96 + i] = i == 9 ? -3e38f : values[96 + i];
      }
      Guarded<float> x(values);
      // Second of two tokens of a tile.
      Guarded<std::int8_t> codes(2 * units * bytes);
      Guarded<InputGroup> groups(2 * units * parts);
      k.quantize({
          .x = x.data(),
          .cols = units * 32,
          .weight_group = weight_group,
          .weight_offset = static_cast<std::int32_t>(random.below(129)),
          .levels = levels,
          .form = form,
          .codes = codes.data() + bytes,
          .code_step = 2 * bytes,
          .groups = groups.data() + 1,
          .group_step = 2,
      });
      out.put(codes);
      for (std::size_t i = 0; i < groups.size(); ++i) {
        out.put(groups[i].scale);
        out.put(groups[i].sum);
        out.put(groups[i].correction);
      }
    }
  }
};

/// n rows of weights in any formats, everything before a guard page.
struct LinearCase {
  explicit LinearCase(std::size_t n, const Format& format, Random& random)
      : tokens(1 + random.below(18)),
        cols(128 * (1 + random.below(2))),
        packed(pack(random_matrix(format, n, cols, random).source)),
        weights(packed.buffer.size()),
        x(wide_floats(tokens * cols, random)),
        bias(random.floats(n)),
        first_block(random.below(packed.matrix.row_blocks)),
        y_step(n + random.below(4)),
        y(std::vector<float>((tokens - 1) * y_step + n, -7.0f)) {
    std::memcpy(weights.data(), packed.buffer.data(), weights.size());
    matrix = packed.matrix;
    matrix.data = weights.data();
  }
  const float* some_bias() const {
    return tokens % 2 == 0 ? bias.data() : nullptr;
  }

  std::size_t tokens, cols;
  Packed packed;
  PackedMatrix matrix;
  Guarded<std::byte> weights;
  Guarded<float> x, bias;
  std::size_t first_block, y_step;
  Guarded<float> y;  // what no kernel should touch stays -7
};

/// Some formats for each n; in the end every affine one has come.
inline std::vector<Format> some_formats(std::size_t n, bool with_dense) {
  std::vector<Format> some;
  std::size_t i = n;
  for (const Format& format : all_formats()) {
    bool taken = format.bits == 0 ? with_dense : ++i % 23 == 0;
    if (taken) some.push_back(format);
  }
  return some;
}

template <>
struct KernelCase<&Kernels::linear_int> {
  static void run(
      const Kernels& k, std::size_t n, Random& random, Output& out
  ) {
    for (const Format& format : some_formats(n, false)) {
      for (std::int32_t levels : {kInt8Levels, kInt16Levels}) {
        LinearCase c(n, format, random);
        RoundedInputs in =
            round_inputs(k, c.matrix, c.x.data(), c.tokens, levels);
        Guarded<std::int8_t> codes(in.codes);
        Guarded<InputGroup> groups(in.groups);
        k.linear_int({
            .weight = &c.matrix,
            .form = in.form,
            .codes = codes.data(),
            .groups = groups.data(),
            .tokens = c.tokens,
            .first_block = c.first_block,
            .last_block = c.matrix.row_blocks,
            .y = c.y.data(),
            .y_step = c.y_step,
            .bias = c.some_bias(),
        });
        out.put(c.y);
      }
    }
  }
};

template <>
struct KernelCase<&Kernels::linear_f32> {
  static void run(
      const Kernels& k, std::size_t n, Random& random, Output& out
  ) {
    for (const Format& format : some_formats(n, true)) {
      LinearCase c(n, format, random);
      Guarded<float> panel(kLinearBlocks * c.cols * 16);
      k.linear_f32({
          .weight = &c.matrix,
          .x = c.x.data(),
          .x_step = c.cols,
          .tokens = c.tokens,
          .first_block = c.first_block,
          .last_block = c.matrix.row_blocks,
          .y = c.y.data(),
          .y_step = c.y_step,
          .bias = c.some_bias(),
          .panel = panel.data(),
      });
      out.put(c.y);
    }
  }
};

}  // namespace afterglow::test
