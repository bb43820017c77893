#pragma once

#include <string>

#include "base/result.h"
#include "kernels/linear/matrix_source.h"
#include "model/tensor.h"

namespace afterglow {

/// How MLX quantizes a matrix, as its config.json says it and as the shapes
/// of the tensors do.
struct MlxQuantization {
  std::string mode = "affine";  // or "mxfp4", "nvfp4", "mxfp8"
  std::size_t bits = 0;         // 0: not quantized
  std::size_t group = 0;

  bool operator==(const MlxQuantization&) const = default;
  /// "4-bit group 64", "mxfp4", "unquantized".
  std::string describe() const;
};

/// Whether MLX has such a format; if not, why, with `where` before it.
Status check_mlx_quantization(
    const MlxQuantization& quantization, const std::string& where
);

/// The tensors that make up a quantized matrix of MLX.
struct MlxTensors {
  const RawTensor& weight;
  const RawTensor& scales;
  const RawTensor* biases;  // of affine quantization
};

/// What the shapes say about a matrix of `cols` columns.
/// Shape: weight U32 [rows, cols * bits / 32], scales and biases [rows, cols /
/// group], of a float type where affine, U8 elsewhere.
/// Errors: kUnsupported naming bits or group; kCorrupt for shapes that do not
/// go together.
Result<MlxQuantization> mlx_quantization(
    const MlxTensors& tensors, std::size_t cols, const std::string& where
);

/// The matrix itself: codes of `bits` bits follow each other from the lowest
/// bit of the first u32 up. mxfp8 becomes dense bf16, exactly down to 2^-133.
/// The source reads from the tensors' bytes whenever it is called.
/// Requires: mlx_quantization() gave `quantization`.
MatrixSource mlx_matrix(
    const MlxTensors& tensors,
    const MlxQuantization& quantization,
    std::size_t cols
);

}  // namespace afterglow
