// Included once per target, behind its lanes and elementwise_body.h.
namespace afterglow::AFTERGLOW_TARGET {

/// (a, b) -> (a c - b s, b c + a s), the second product of each rounded
/// within the fma.
inline void rope_halves(
    float* x, const float* cosine, const float* sine, std::size_t pairs
) {
  for (std::size_t i = 0; i < pairs; i += kLanes) {
    std::size_t n = pairs - i < kLanes ? pairs - i : kLanes;
    F c = load_up_to(cosine + i, n);
    F s = load_up_to(sine + i, n);
    F a = load_up_to(x + i, n);
    F b = load_up_to(x + pairs + i, n);
    store_first(x + i, fma(sub(set(0.0f), b), s, mul(a, c)), n);
    store_first(x + pairs + i, fma(a, s, mul(b, c)), n);
  }
}

inline void rope_row(
    float* x,
    const float* cosine,
    const float* sine,
    std::size_t pairs,
    bool interleaved
) {
  if (!interleaved) {
    rope_halves(x, cosine, sine, pairs);
    return;
  }
  for (std::size_t i = 0; i < pairs; ++i) {
    float a = x[2 * i];
    float b = x[2 * i + 1];
    float c = cosine[i];
    float s = sine[i];
    x[2 * i] = __builtin_fmaf(-b, s, a * c);
    x[2 * i + 1] = __builtin_fmaf(a, s, b * c);
  }
}

}  // namespace afterglow::AFTERGLOW_TARGET
