#pragma once

#include <cstddef>

#include "base/aligned_buffer.h"
#include "base/result.h"
#include "kernels/linear/matrix_source.h"
#include "kernels/linear/packed_matrix.h"

namespace afterglow {

/// The layout (data not yet set) in which `rows` rows of a source's format
/// are packed: codes of up to 4 bits in 4, others in 8. Errors: kUnsupported
/// for a width of codes, a group that is neither 16 nor a multiple of 32 or
/// does not divide cols, signed codes with biases, or values of other codes
/// than MatrixSource says.
Result<PackedMatrix> packed_layout(
    const MatrixSource& format, std::size_t rows
);

/// Room for the conversion of one row block; one for each thread.
struct PackScratch {
  AlignedBuffer codes, scales, biases;
  explicit PackScratch(const PackedMatrix& layout);
};

/// A run of rows of one source.
struct SourceRows {
  const MatrixSource* source;
  std::size_t first;
  std::size_t count;
};

/// Packs one row block from the runs of rows that make it up, in order; the
/// rest of its 16 rows is padded. Shape: out row_block_bytes.
/// Thread: blocks may be packed at the same time, each thread with its own
/// scratch.
void pack_row_block(
    const PackedMatrix& layout,
    const SourceRows* runs,
    std::size_t run_count,
    PackScratch& scratch,
    std::byte* out
);

/// Row r as f32: scale * (code - offset) + bias with one rounding (a zero may
/// lose its sign), or the element. Shape: out [cols].
void decode_row(const PackedMatrix& matrix, std::size_t r, float* out);

}  // namespace afterglow
