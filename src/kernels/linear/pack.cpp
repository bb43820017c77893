#include "kernels/linear/pack.h"

#include <algorithm>
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

using Bytes = std::uint64_t;  // eight at once

constexpr Bytes repeat(std::uint32_t byte) {
  return Bytes{byte} * 0x0101010101010101;
}

template <class T>
T get(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Inputs 8i..8i+7 of a row, whose vectors are 16 rows of 4 inputs apart.
void put_eight(Bytes codes, std::size_t i, std::uint8_t* lane) {
  constexpr std::size_t kVector = 4 * kRows;
  auto first = static_cast<std::uint32_t>(codes);
  auto second = static_cast<std::uint32_t>(codes >> 32);
  std::memcpy(lane + 2 * i * kVector, &first, 4);
  std::memcpy(lane + (2 * i + 1) * kVector, &second, 4);
}

// Makes signed codes unsigned: adding the offset flips the sign bit, and what
// lies above it goes.
struct Unsign {
  Bytes flip, mask;

  Bytes operator()(const std::uint8_t* codes) const {
    return (get<Bytes>(codes) ^ flip) & mask;
  }
};

void pack_32(
    int bits, Unsign unsign, const std::uint8_t* codes, std::uint8_t* lane
) {
  if (bits == 8) {
    for (std::size_t i = 0; i < 4; ++i) {
      put_eight(unsign(codes + 8 * i), i, lane);
    }
  } else {
    for (std::size_t i = 0; i < 2; ++i) {
      Bytes low = unsign(codes + 8 * i);
      Bytes high = unsign(codes + 16 + 8 * i);
      put_eight(low | high << 4, i, lane);
    }
  }
}

void pack_codes(
    const PackedMatrix& m, const std::uint8_t* codes, std::byte* out
) {
  bool is_signed = m.offset != 0 && !m.has_values;
  auto most = static_cast<std::uint32_t>(m.has_values ? 15 : m.most);
  Unsign unsign{
      repeat(is_signed ? static_cast<std::uint32_t>(m.offset) : 0),
      repeat(most)};
  std::size_t sub_bytes = kRows * kInputs * m.bits / 8;
  auto* block = reinterpret_cast<std::uint8_t*>(out);
  for (std::size_t c = 0; c < m.cols; block += m.block_bytes) {
    std::uint8_t* sub = block + m.header_bytes;
    for (std::size_t i = 0; i < m.block_inputs; i += kInputs, c += kInputs) {
      for (std::size_t row = 0; row < kRows; ++row) {
        pack_32(m.bits, unsign, codes + row * m.cols + c, sub + row * 4);
      }
      sub += sub_bytes;
    }
  }
}

// Elements [16][groups] to [groups][16], the groups of a block together.
template <class T>
void pack_scales(const PackedMatrix& m, const T* values, std::byte* out) {
  std::size_t groups = m.cols / m.group;
  for (std::size_t g = 0; g < groups; out += m.block_bytes) {
    for (std::size_t i = 0; i < m.block_groups; ++i, ++g) {
      T lanes[kRows];
      for (std::size_t row = 0; row < kRows; ++row) {
        lanes[row] = values[row * groups + g];
      }
      std::memcpy(out + i * sizeof lanes, lanes, sizeof lanes);
    }
  }
}

// Elements [16][cols] to [cols][16].
template <class T>
void pack_dense(const PackedMatrix& m, const T* values, std::byte* out) {
  // A cache line of each row in turn.
  constexpr std::size_t kLine = 64 / sizeof(T);
  auto* to = reinterpret_cast<T*>(out);
  for (std::size_t c = 0; c < m.cols; c += kLine) {
    std::size_t end = std::min(c + kLine, m.cols);
    for (std::size_t row = 0; row < kRows; ++row) {
      for (std::size_t i = c; i < end; ++i) {
        to[i * kRows + row] = values[row * m.cols + i];
      }
    }
  }
}

template <class T>
void pack_rows(const PackedMatrix& m, PackScratch& scratch, std::byte* out) {
  if (m.bits == 0) {
    pack_dense(m, scratch.codes.as<T>(), out);
    return;
  }
  pack_scales(m, scratch.scales.as<T>(), out);
  if (m.has_bias) {
    std::byte* biases = out + m.block_groups * kRows * sizeof(T);
    pack_scales(m, scratch.biases.as<T>(), biases);
  }
  pack_codes(m, scratch.codes.as<std::uint8_t>(), out);
}

float element(ElementType type, const std::byte* p) {
  if (type == ElementType::kF32) {
    return get<float>(p);
  }
  auto bits = get<std::uint16_t>(p);
  return type == ElementType::kF16 ? half_to_float(bits)
                                   : bfloat_to_float(bits);
}

// The unsigned code or value of input i (of 32) of a row.
int code_of(
    const PackedMatrix& m,
    const std::byte* codes,
    std::size_t row,
    std::size_t i
) {
  std::size_t vector = m.bits == 4 ? i % 16 / 4 : i / 4;
  int byte = std::to_integer<int>(codes[(vector * kRows + row) * 4 + i % 4]);
  if (m.bits == 8) {
    return byte;
  }
  return m.values[i < 16 ? byte & 15 : byte >> 4];
}

// What is asked of a format with groups.
Status check_affine(const MatrixSource& format) {
  if (format.bits < 1 || format.bits > 8) {
    return unsupported(
        std::to_string(format.bits) + "-bit weights (1 to 8 are supported)"
    );
  }
  std::size_t group = format.group;
  std::size_t inputs = std::max(group, kInputs);
  if ((group != kInputs / 2 && (group == 0 || group % kInputs != 0)) ||
      format.cols % inputs != 0) {
    return unsupported(
        "groups of " + std::to_string(group) + " in rows of " +
        std::to_string(format.cols) +
        " weights (a group must be 16 or a multiple of 32, and both it and 32 "
        "divide the row)"
    );
  }
  if (format.signed_codes && format.has_bias) {
    return unsupported("signed weights with biases");
  }
  if (format.values != nullptr &&
      (format.bits != 4 || format.signed_codes || format.has_bias)) {
    return unsupported("a table of values but for unsigned 4 bits, no biases");
  }
  return {};
}

void set_values(const MatrixSource& format, PackedMatrix& m) {
  for (int code = 0; code < 16; ++code) {
    m.values[code] = static_cast<std::uint8_t>(code);
  }
  m.most = (1 << format.bits) - 1;
  m.offset = format.signed_codes ? 1 << (format.bits - 1) : 0;
  if (format.values != nullptr) {
    auto [least, most] =
        std::minmax_element(format.values->begin(), format.values->end());
    m.has_values = true;
    m.offset = -*least;
    m.most = *most - *least;
    for (int code = 0; code < 16; ++code) {
      m.values[code] =
          static_cast<std::uint8_t>((*format.values)[code] + m.offset);
    }
  }
}

}  // namespace

Result<PackedMatrix> packed_layout(
    const MatrixSource& format, std::size_t rows
) {
  PackedMatrix m;
  m.rows = rows;
  m.cols = format.cols;
  m.type = format.type;
  m.element_bytes = size_of(format.type);
  m.row_blocks = (rows + kRows - 1) / kRows;
  if (rows == 0 || format.cols == 0) {
    return unsupported("a matrix without elements");
  }
  if (format.bits == 0) {
    m.row_block_bytes = kRows * format.cols * m.element_bytes;
    return m;
  }
  if (Status status = check_affine(format); !status) {
    return status.error();
  }
  m.bits = format.bits <= 4 ? 4 : 8;
  m.group = format.group;
  m.block_inputs = std::max(m.group, kInputs);
  m.block_groups = m.block_inputs / m.group;
  m.has_bias = format.has_bias;
  set_values(format, m);
  std::size_t scales = m.block_groups * (m.has_bias ? 2 : 1);
  m.header_bytes = kRows * m.element_bytes * scales;
  m.block_bytes = m.header_bytes + kRows * m.block_inputs * m.bits / 8;
  m.row_block_bytes = m.block_bytes * (m.cols / m.block_inputs);
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
  if (!dense) {
    std::size_t missing_scales = missing * scale_row;
    std::memset(scratch.scales.data() + row * scale_row, 0, missing_scales);
    std::memset(scratch.biases.data() + row * scale_row, 0, missing_scales);
  }
  if (size == 4) {
    pack_rows<float>(m, scratch, out);
  } else {
    pack_rows<std::uint16_t>(m, scratch, out);
  }
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
  std::size_t scale_bytes = kRows * size;
  for (std::size_t c = 0; c < m.cols; c += kInputs) {
    const std::byte* at = block + c / m.block_inputs * m.block_bytes;
    const std::byte* codes =
        at + m.header_bytes + c % m.block_inputs / kInputs * sub_bytes;
    for (std::size_t i = 0; i < kInputs; ++i) {
      std::size_t slot = m.block_groups == 2 ? i / 16 : 0;
      const std::byte* group = at + slot * scale_bytes + lane * size;
      float scale = element(m.type, group);
      float bias = 0;
      if (m.has_bias) {
        bias = element(m.type, group + m.block_groups * scale_bytes);
      }
      int code = code_of(m, codes, lane, i);
      out[c + i] = std::fma(scale, static_cast<float>(code - m.offset), bias);
    }
  }
}

}  // namespace afterglow
