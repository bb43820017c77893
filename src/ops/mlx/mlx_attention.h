#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "mlx/mlx.h"
#include "ops/ops.h"

namespace afterglow {

namespace mx = ::mlx::core;

/// Rotates heads by absolute position. MLX takes wavelengths, the inverses of
/// Rope's frequencies; those arrays are kept here.
/// Thread: the one of the stream.
class MlxRope {
 public:
  explicit MlxRope(mx::Stream stream) : stream_(stream) {}

  /// Shape: [1, heads, tokens, head_dim], of which the first token has
  /// position `offset`. Throws what MLX throws.
  mx::array rotate(const mx::array& x, const Rope& rope, std::size_t offset);

 private:
  struct Entry {
    Rope rope;
    int head_dim;
    mx::array wavelengths;  // [pairs]
    mx::array scale;        // [head_dim]: rope.scale where dimensions turn
  };
  const Entry& entry_for(const Rope& rope, int head_dim);

  mx::Stream stream_;
  std::vector<Entry> entries_;
};

/// Causal attention of the last tokens of a sequence over all of it, with
/// window and softcap as in Attention, and the scores of sinks, if any.
/// Shape: q [1, heads, n, d], k and v [1, kv_heads, total, d] with
/// n <= total, sinks [heads] of q's type; out [n, heads d].
mx::array attend_span(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    const std::optional<mx::array>& sinks,
    const Attention& attention,
    mx::Stream stream
);

}  // namespace afterglow
