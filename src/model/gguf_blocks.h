#pragma once

#include <optional>

#include "kernels/linear/matrix_source.h"
#include "model/matrix_bytes.h"
#include "model/matrix_decode.h"

namespace afterglow {

/// A matrix of blocks of a format, which is a type with
///   Scale: the type of scales and biases, kType its name
///   kInputs, kBytes: inputs and bytes of a block
///   kBits, kSigned, kGroup, kBias: as in MatrixSource
///   kValues: a CodeValues, or nullptr
///   decode(block, codes, scales, biases): one block; biases where kBias.
template <class Format>
MatrixSource block_matrix(const RawTensor& tensor, RowOrder order) {
  using Scale = typename Format::Scale;
  MatrixSource source;
  source.rows = tensor.shape[0];
  source.cols = tensor.shape[1];
  source.type = Format::kType;
  source.bits = Format::kBits;
  source.group = Format::kGroup;
  source.signed_codes = Format::kSigned;
  source.has_bias = Format::kBias;
  source.values = Format::kValues;
  source.read = [data = tensor.bytes.data(),
                 blocks = source.cols / Format::kInputs,
                 order](
                    std::size_t first,
                    std::size_t count,
                    void* codes_out,
                    void* scales_out,
                    void* biases_out
                ) {
    constexpr std::size_t kGroups = Format::kInputs / Format::kGroup;
    auto* codes = static_cast<std::uint8_t*>(codes_out);
    auto* scales = static_cast<Scale*>(scales_out);
    auto* biases = static_cast<Scale*>(biases_out);
    for (std::size_t row = first; row < first + count; ++row) {
      const std::byte* block =
          data + order.file_row(row) * blocks * Format::kBytes;
      for (std::size_t i = 0; i < blocks; ++i, block += Format::kBytes) {
        Format::decode(block, codes, scales, biases);
        codes += Format::kInputs;
        scales += kGroups;
        if (Format::kBias) {
          biases += kGroups;
        }
      }
    }
  };
  return source;
}

/// What IQ4_NL and IQ4_XS make of codes.
inline constexpr CodeValues kIq4Values = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/// Matrices of GGUF's blocks of 32, and of 256 ("K-quants" and IQ4_XS), with
/// values exactly those of the formats' definition. Nothing for other types.
/// Requires: tensor.bytes has the size its dtype and shape need; two
/// dimensions.
/// Source: the layouts of ggml's block_q4_0 to block_iq4_xs.
std::optional<MatrixSource> gguf_block_matrix(
    const RawTensor& tensor, RowOrder order
);
std::optional<MatrixSource> gguf_k_matrix(
    const RawTensor& tensor, RowOrder order
);

}  // namespace afterglow
