// Included once per target, behind its lanes and math/exp_body.h.
namespace afterglow::AFTERGLOW_TARGET {

inline float max_of(const float* x, std::size_t n) {
  F most = set(-__builtin_inff());
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    most = max(load(x + i), most);
  }
  float result = reduce_max(most);
  for (; i < n; ++i) {
    result = x[i] > result ? x[i] : result;
  }
  return result;
}

inline std::size_t argmax_array(const float* x, std::size_t n) {
  float most = max_of(x, n);
  for (std::size_t i = 0; i < n; ++i) {
    if (x[i] == most) {
      return i;
    }
  }
  return 0;
}

/// Lane l sums e^(x[l] - m), e^(x[l + 16] - m), ... upwards.
inline float exp_sum_array(const float* x, std::size_t n, float most) {
  F m = set(most);
  F sum = set(0.0f);
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    sum = add(sum, exp(sub(load(x + i), m)));
  }
  if (i < n) {
    F e = exp(sub(load_first(x + i, n - i), m));
    auto left = static_cast<std::int32_t>(n - i);
    sum = add(sum, select(lanes_between(0, left), e, set(0.0f)));
  }
  return reduce_add(sum);
}

}  // namespace afterglow::AFTERGLOW_TARGET
