#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "kernels/linear/matrix_source.h"
#include "mlx/mlx.h"

namespace afterglow {

namespace mx = ::mlx::core;

/// Consecutive rows of a linear layer that are stored alike.
/// Dense (bits == 0): `codes` is [rows, cols]. Affine: `codes` is
/// [rows, cols bits / 32] u32, scales and biases [rows, cols / group].
struct MlxPiece {
  mx::array codes;
  std::optional<mx::array> scales;
  std::optional<mx::array> biases;
  int bits = 0;
  int group = 0;
};

/// A linear layer: y = x [piece 0; piece 1; ...]^T + bias.
struct MlxLinear {
  std::vector<MlxPiece> pieces;
  std::optional<mx::array> bias;
  std::size_t rows = 0;
  std::size_t cols = 0;

  std::size_t bytes() const;
};

/// Repacks parts into MLX's affine form wherever that holds them exactly:
/// groups of 32, 64 or a multiple of 128, unsigned codes up to 8 bits, or
/// signed ones without a bias (for 8 bits q becomes q + 128, the bias -128
/// scale). All else becomes dense f32: groups of 16, tables of values. With
/// `widen` scales, biases and dense elements become f32 as well, since MLX's
/// CPU kernels crawl on 16-bit ones. Errors: kInvalidArgument for shapes that
/// do not fit together, kUnsupported for a format that cannot be computed with.
/// Throws what MLX throws.
Result<MlxLinear> pack_linear(
    std::span<const MatrixSource> parts,
    std::span<const float> bias,
    bool widen,
    ThreadPool& pool
);

/// x W^T + bias in x's type. Shape: [T, cols] -> [T, rows].
mx::array apply_linear(
    const MlxLinear& linear, const mx::array& x, mx::Stream stream
);

/// The given rows of a layer of one piece, in `type`.
/// Shape: ids [T] -> [T, cols].
mx::array take_rows(
    const MlxLinear& linear,
    const mx::array& ids,
    mx::Dtype type,
    mx::Stream stream
);

}  // namespace afterglow
