#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/linear/matrix_source.h"
#include "model/tensor.h"

namespace afterglow {

/// The order of a matrix's rows in its file. GGUF `llama` files keep the rows
/// of q and k so that the two halves of a rope pair lie side by side; with
/// `rope_head_dim` set, rows are put back into the order of HF: pair (i, i +
/// head_dim / 2).
struct RowOrder {
  std::size_t rope_head_dim = 0;  // 0: rows as they are

  /// The file's row that holds row `row`.
  std::size_t file_row(std::size_t row) const {
    if (rope_head_dim == 0) {
      return row;
    }
    const std::size_t half = rope_head_dim / 2;
    const std::size_t in_head = row % rope_head_dim;
    return row - in_head + 2 * (in_head % half) + in_head / half;
  }
};

/// F32, F16 or BF16 by name.
std::optional<ElementType> element_type(const std::string& dtype);

/// A matrix of a type that needs one tensor: F32, F16, BF16, or one of GGUF's
/// blocks, with values exactly those of the format's definition.
/// The source reads from tensor.bytes whenever it is called.
/// Requires: tensor.bytes has the size its dtype and shape need.
/// Errors: kUnsupported naming the type; kCorrupt unless two-dimensional.
Result<MatrixSource> single_tensor_matrix(
    const RawTensor& tensor, RowOrder order, const std::string& where
);

/// A vector of F32, F16 or BF16 as floats, exactly.
/// Errors: kUnsupported naming the type; kCorrupt unless one-dimensional.
Result<std::vector<float>> read_vector(
    const RawTensor& tensor, RowOrder order, const std::string& where
);

}  // namespace afterglow
