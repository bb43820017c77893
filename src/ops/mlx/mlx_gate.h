#pragma once

#include "mlx/mlx.h"
#include "ops/ops.h"

namespace afterglow {

namespace mx = ::mlx::core;

/// f(x), element by element: x sigmoid(x), or GELU in its tanh form.
mx::array apply_gate(
    const mx::array& x, GateFunction function, mx::Stream stream
);

}  // namespace afterglow
