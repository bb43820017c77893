#include "ops/mlx/mlx_gate.h"

namespace afterglow {

mx::array apply_gate(const mx::array& x, GateFunction function, mx::Stream s) {
  if (function == GateFunction::kSilu) {
    return mx::multiply(x, mx::sigmoid(x, s), s);
  }
  // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), with x taken out of the
  // bracket. Source: Hendrycks and Gimpel, arXiv 1606.08415.
  const auto constant = [&](float value) {
    return mx::array(value, x.dtype());
  };
  const mx::array square = mx::multiply(x, x, s);
  const mx::array factor =
      mx::add(constant(1.0F), mx::multiply(constant(0.044715F), square, s), s);
  const mx::array inner =
      mx::multiply(mx::multiply(constant(0.7978845608F), x, s), factor, s);
  const mx::array gate = mx::add(constant(1.0F), mx::tanh(inner, s), s);
  return mx::multiply(mx::multiply(constant(0.5F), x, s), gate, s);
}

}  // namespace afterglow
