// Included once per target, behind its lanes and elementwise_body.h.
namespace afterglow::AFTERGLOW_TARGET {

/// Lane l sums the squares of x[l], x[l + 16], ... upwards; the tree adds the
/// lanes.
inline void rms_norm_row(
    const float* x, const float* weight, float eps, std::size_t n, float* y
) {
  F squares = set(0.0f);
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    F v = load(x + i);
    squares = fma(v, v, squares);
  }
  if (i < n) {
    F v = load_first(x + i, n - i);
    squares = fma(v, v, squares);
  }
  float mean = reduce_add(squares) / static_cast<float>(n);
  F factor = set(1.0f / square_root(mean + eps));
  struct Pair {
    F x, weight;
  };
  for_lanes(
      n,
      y,
      [=](std::size_t k, std::size_t count) {
        return Pair{load_up_to(x + k, count), load_up_to(weight + k, count)};
      },
      [=](Pair p) { return mul(mul(p.x, factor), p.weight); }
  );
}

}  // namespace afterglow::AFTERGLOW_TARGET
