#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/half.h"
#include "kernels/linear/pack.h"
#include "kernels/testing/random.h"

namespace afterglow::test {

/// A weight format and its name in messages.
struct Format {
  std::string name;
  ElementType type;
  int bits;
  std::size_t group;
  bool signed_codes;
  bool has_bias;
  const CodeValues* values = nullptr;
};

/// Values small enough for sums of bytes, and such that reach the ends of one.
inline constexpr CodeValues kSmallValues = {
    0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
inline constexpr CodeValues kLargeValues = {
    -128, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 127};

/// Every kind of format that can be packed.
inline std::vector<Format> all_formats() {
  std::vector<Format> formats;
  const std::pair<const char*, ElementType> types[] = {
      {"f32", ElementType::kF32},
      {"f16", ElementType::kF16},
      {"bf16", ElementType::kBF16}};
  for (auto [name, type] : types) {
    formats.push_back({name, type, 0, 0, false, false});
    for (int bits : {2, 3, 4, 5, 6, 8}) {
      for (std::size_t group : {16, 32, 64, 128}) {
        if (group > 32 && bits % 4 != 0) {
          continue;  // packed as 4 or 8 bits are
        }
        std::string text =
            std::to_string(bits) + "-bit/" + std::to_string(group) + " " + name;
        formats.push_back({text, type, bits, group, false, false});
        formats.push_back({text + " bias", type, bits, group, false, true});
        formats.push_back({text + " signed", type, bits, group, true, false});
      }
    }
    for (std::size_t group : {16, 32, 64}) {
      std::string text = "values/" + std::to_string(group) + " " + name;
      formats.push_back(
          {"small " + text, type, 4, group, false, false, &kSmallValues}
      );
      formats.push_back(
          {"large " + text, type, 4, group, false, false, &kLargeValues}
      );
    }
  }
  return formats;
}

/// A random matrix: its source, and its weights in double from the
/// definition of MatrixSource.
struct Matrix {
  MatrixSource source;
  std::vector<double> weights;  // [rows][cols]
};

inline std::byte* put_element(ElementType type, float value, std::byte* out) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if (type == ElementType::kF32) {
    std::memcpy(out, &bits, 4);
    return out + 4;
  }
  auto half = type == ElementType::kF16
                  ? float_to_half(value)
                  : static_cast<std::uint16_t>(bits >> 16);
  std::memcpy(out, &half, 2);
  return out + 2;
}

inline double element_value(ElementType type, const std::byte* in) {
  if (type == ElementType::kF32) {
    float value;
    std::memcpy(&value, in, 4);
    return value;
  }
  std::uint16_t half;
  std::memcpy(&half, in, 2);
  return type == ElementType::kF16 ? half_to_float(half)
                                   : bfloat_to_float(half);
}

inline Matrix random_matrix(
    const Format& format, std::size_t rows, std::size_t cols, Random& random
) {
  struct Content {
    std::vector<std::byte> codes, scales, biases;
  };
  auto content = std::make_shared<Content>();
  std::size_t size = size_of(format.type);
  Matrix matrix;
  matrix.weights.resize(rows * cols);
  auto elements = [&](std::size_t n, float scale) {
    std::vector<std::byte> bytes(n * size);
    std::byte* out = bytes.data();
    for (std::size_t i = 0; i < n; ++i) {
      out = put_element(format.type, random.unit() * scale, out);
    }
    return bytes;
  };
  bool dense = format.bits == 0;
  if (dense) {
    content->codes = elements(rows * cols, 1);
    for (std::size_t i = 0; i < rows * cols; ++i) {
      matrix.weights[i] =
          element_value(format.type, content->codes.data() + i * size);
    }
  } else {
    std::size_t groups = rows * cols / format.group;
    int largest = (1 << format.bits) - 1;
    if (format.values != nullptr) {
      auto most =
          std::max_element(format.values->begin(), format.values->end());
      largest = static_cast<int>(most - format.values->begin());
    }
    content->codes.resize(rows * cols);
    content->scales = elements(groups, 0.1f);
    content->biases = elements(groups, 1);
    for (std::size_t i = 0; i < rows * cols; ++i) {
      // The first row reaches the largest sums; extremes elsewhere, too.
      auto code = i < cols ? largest
                           : static_cast<int>(random.below(1u << format.bits));
      if (random.below(4) == 0 && i >= cols) {
        code = random.below(2) == 0 ? 0 : largest;
      }
      int value = format.values != nullptr ? (*format.values)[code] : code;
      if (format.signed_codes) {
        code -= 1 << (format.bits - 1);
        value = code;
      }
      content->codes[i] = static_cast<std::byte>(code);
      std::size_t g = i / format.group * size;
      double scale = element_value(format.type, content->scales.data() + g);
      double bias = format.has_bias
                        ? element_value(format.type, content->biases.data() + g)
                        : 0;
      matrix.weights[i] = scale * value + bias;
    }
  }
  MatrixSource& source = matrix.source;
  source.rows = rows;
  source.cols = cols;
  source.type = format.type;
  source.bits = format.bits;
  source.group = format.group;
  source.signed_codes = format.signed_codes;
  source.has_bias = format.has_bias;
  source.values = format.values;
  std::size_t code_row = cols * (dense ? size : 1);
  std::size_t scale_row = dense ? 0 : cols / format.group * size;
  source.read = [=](std::size_t first,
                    std::size_t count,
                    void* codes,
                    void* scales,
                    void* biases) {
    std::memcpy(
        codes, content->codes.data() + first * code_row, count * code_row
    );
    if (scales != nullptr) {
      std::memcpy(
          scales, content->scales.data() + first * scale_row, count * scale_row
      );
    }
    if (biases != nullptr) {
      std::memcpy(
          biases, content->biases.data() + first * scale_row, count * scale_row
      );
    }
  };
  return matrix;
}

/// A packed matrix with its memory.
struct Packed {
  PackedMatrix matrix;
  AlignedBuffer buffer;
};

inline Packed pack(const MatrixSource& source) {
  Packed packed;
  packed.matrix = packed_layout(source, source.rows).value();
  PackedMatrix& m = packed.matrix;
  packed.buffer = AlignedBuffer(m.row_blocks * m.row_block_bytes);
  m.data = packed.buffer.data();
  PackScratch scratch(m);
  for (std::size_t b = 0; b < m.row_blocks; ++b) {
    std::size_t first = b * PackedMatrix::kRows;
    std::size_t left = source.rows - first;
    SourceRows run{
        &source,
        first,
        left < PackedMatrix::kRows ? left : PackedMatrix::kRows};
    pack_row_block(
        m, &run, 1, scratch, packed.buffer.data() + b * m.row_block_bytes
    );
  }
  return packed;
}

}  // namespace afterglow::test
