#include "kernels/linear/pack.h"

#include <cmath>
#include <cstring>

#include "base/check.h"
#include "kernels/half.h"

namespace afterglow {
namespace {

constexpr std::size_t kRows = PackedMatrix::kRows;
constexpr std::size_t kInputs = PackedMatrix::kInputs;

Error unsupported(const std::string& what) {
  return {Code::kUnsupported, "[kernels.pack] " + what};
}

// Where the code of input i (of 32) of a row lies within its 32 inputs.
std::size_t code_position(int bits, std::size_t row, std::size_t i) {
  std::size_t vector = bits == 4 ? i % 16 / 4 : i / 4;
  return (vector * kRows + row) * 4 + i % 4;
}

void pack_codes(
    const PackedMatrix& m, const std::uint8_t* codes, std::byte* out
) {
  auto flip = static_cast<std::uint8_t>(m.offset);
  auto* bytes = reinterpret_cast<std::uint8_t*>(out);
  std::size_t sub_bytes = kRows * kInputs * m.bits / 8;
  for (std::size_t row = 0; row < kRows; ++row) {
    const std::uint8_t* in = codes + row * m.cols;
    for (std::size_t c = 0; c < m.cols; c += kInputs, in += kInputs) {
      std::uint8_t* block = bytes + c / m.group * m.block_bytes +
                            m.header_bytes + c % m.group / kInputs * sub_bytes;
      std::uint8_t* lane = block + row * 4;
      if (m.bits == 8) {
        for (std::size_t i = 0; i < kInputs; ++i) {
          lane[i / 4 * (4 * kRows) + i % 4] =
              static_cast<std::uint8_t>(in[i] + flip);
        }
      } else {
        for (std::size_t i = 0; i < kInputs / 2; ++i) {
          auto low = static_cast<std::uint8_t>(in[i] + flip);
          auto high = static_cast<std::uint8_t>(in[i + 16] + flip);
          lane[i / 4 * (4 * kRows) + i % 4] =
              static_cast<std::uint8_t>((low & 15) | high << 4);
        }
      }
    }
  }
}

// Elements [16][groups] to [groups][16] at a distance of block_bytes.
void pack_scales(
    const PackedMatrix& m, const std::byte* values, std::byte* out
) {
  std::size_t groups = m.cols / m.group;
  std::size_t size = m.element_bytes;
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t g = 0; g < groups; ++g) {
      std::memcpy(
          out + g * m.block_bytes + row * size,
          values + (row * groups + g) * size,
          size
      );
    }
  }
}

float element(ElementType type, const std::byte* p) {
  if (type == ElementType::kF32) {
    float value;
    std::memcpy(&value, p, sizeof value);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return type == ElementType::kF16 ? half_to_float(bits)
                                   : bfloat_to_float(bits);
}

}  // namespace

Result<PackedMatrix> packed_layout(
    const MatrixSource& format, std::size_t rows
) {
  PackedMatrix m;
  m.rows = rows;
  m.cols = format.cols;
  m.bits = format.bits;
  m.type = format.type;
  m.element_bytes = size_of(format.type);
  m.row_blocks = (rows + kRows - 1) / kRows;
  if (rows == 0 || format.cols == 0) {
    return unsupported("a matrix without elements");
  }
  if (format.bits == 0) {
    m.row_block_bytes = kRows * format.cols * size_of(format.type);
    return m;
  }
  if (format.bits != 4 && format.bits != 8) {
    return unsupported(
        std::to_string(format.bits) + "-bit weights (4 and 8 are supported)"
    );
  }
  if (format.group == 0 || format.group % kInputs != 0 ||
      format.cols % format.group != 0) {
    return unsupported(
        "groups of " + std::to_string(format.group) + " in rows of " +
        std::to_string(format.cols) +
        " weights (a group must be a multiple of 32 and divide the row)"
    );
  }
  if (format.signed_codes && format.has_bias) {
    return unsupported("signed weights with biases");
  }
  m.group = format.group;
  m.has_bias = format.has_bias;
  m.offset = format.signed_codes ? 1 << (format.bits - 1) : 0;
  m.header_bytes = kRows * size_of(format.type) * (format.has_bias ? 2 : 1);
  m.block_bytes = m.header_bytes + kRows * m.group * format.bits / 8;
  m.row_block_bytes = m.block_bytes * (format.cols / m.group);
  return m;
}

PackScratch::PackScratch(const PackedMatrix& layout)
    : codes(
          kRows * layout.cols * (layout.bits == 0 ? size_of(layout.type) : 1)
      ) {
  if (layout.bits != 0) {
    std::size_t bytes =
        kRows * (layout.cols / layout.group) * size_of(layout.type);
    scales = AlignedBuffer(bytes);
    biases = AlignedBuffer(bytes);
  }
}

void pack_row_block(
    const PackedMatrix& m,
    const SourceRows* runs,
    std::size_t run_count,
    PackScratch& scratch,
    std::byte* out
) {
  bool dense = m.bits == 0;
  std::size_t size = m.element_bytes;
  std::size_t code_row = m.cols * (dense ? size : 1);
  std::size_t scale_row = dense ? 0 : m.cols / m.group * size;
  std::size_t row = 0;
  for (std::size_t i = 0; i < run_count; ++i) {
    const SourceRows& run = runs[i];
    CHECK(row + run.count <= kRows);
    run.source->read(
        run.first,
        run.count,
        scratch.codes.data() + row * code_row,
        dense ? nullptr : scratch.scales.data() + row * scale_row,
        m.has_bias ? scratch.biases.data() + row * scale_row : nullptr
    );
    row += run.count;
  }
  std::size_t missing = kRows - row;
  std::memset(scratch.codes.data() + row * code_row, 0, missing * code_row);
  if (dense) {
    for (std::size_t r = 0; r < kRows; ++r) {
      const std::byte* in = scratch.codes.data() + r * code_row;
      for (std::size_t c = 0; c < m.cols; ++c) {
        std::memcpy(out + (c * kRows + r) * size, in + c * size, size);
      }
    }
    return;
  }
  std::memset(scratch.scales.data() + row * scale_row, 0, missing * scale_row);
  std::memset(scratch.biases.data() + row * scale_row, 0, missing * scale_row);
  pack_scales(m, scratch.scales.data(), out);
  if (m.has_bias) {
    pack_scales(m, scratch.biases.data(), out + kRows * size);
  }
  pack_codes(m, scratch.codes.as<std::uint8_t>(), out);
}

void decode_row(const PackedMatrix& m, std::size_t r, float* out) {
  CHECK(r < m.rows);
  const std::byte* block = m.data + r / kRows * m.row_block_bytes;
  std::size_t lane = r % kRows;
  std::size_t size = m.element_bytes;
  if (m.bits == 0) {
    for (std::size_t c = 0; c < m.cols; ++c) {
      out[c] = element(m.type, block + (c * kRows + lane) * size);
    }
    return;
  }
  std::size_t sub_bytes = kRows * kInputs * m.bits / 8;
  for (std::size_t c = 0; c < m.cols; c += kInputs) {
    const std::byte* group = block + c / m.group * m.block_bytes;
    float scale = element(m.type, group + lane * size);
    float bias =
        m.has_bias ? element(m.type, group + (kRows + lane) * size) : 0.0f;
    const std::byte* codes =
        group + m.header_bytes + c % m.group / kInputs * sub_bytes;
    for (std::size_t i = 0; i < kInputs; ++i) {
      int code = std::to_integer<int>(codes[code_position(m.bits, lane, i)]);
      if (m.bits == 4) {
        code = i < 16 ? code & 15 : code >> 4;
      }
      out[c + i] = std::fma(scale, static_cast<float>(code - m.offset), bias);
    }
  }
}

}  // namespace afterglow
