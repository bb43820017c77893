// Included once per target, behind its lanes and math/exp_body.h.
namespace afterglow::AFTERGLOW_TARGET {

/// Calls op(lanes from i on) -> lanes for all of n and stores the results.
template <class Load, class Op>
inline void for_lanes(std::size_t n, float* out, Load load_at, Op op) {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    store(out + i, op(load_at(i, std::size_t{kLanes})));
  }
  if (i < n) {
    store_first(out + i, op(load_at(i, n - i)), n - i);
  }
}

inline F load_up_to(const float* p, std::size_t n) {
  return n == kLanes ? load(p) : load_first(p, n);
}

inline void exp_array(const float* x, std::size_t n, float* y) {
  for_lanes(
      n,
      y,
      [=](std::size_t i, std::size_t k) { return load_up_to(x + i, k); },
      [](F v) { return exp(v); }
  );
}

inline void tanh_array(const float* x, std::size_t n, float* y) {
  for_lanes(
      n,
      y,
      [=](std::size_t i, std::size_t k) { return load_up_to(x + i, k); },
      [](F v) { return tanh(v); }
  );
}

inline void softcap_array(float* x, std::size_t n, float cap) {
  for_lanes(
      n,
      x,
      [=](std::size_t i, std::size_t k) { return load_up_to(x + i, k); },
      [=](F v) { return mul(set(cap), tanh(div(v, set(cap)))); }
  );
}

inline void add_array(float* x, const float* y, std::size_t n) {
  struct Pair {
    F a, b;
  };
  for_lanes(
      n,
      x,
      [=](std::size_t i, std::size_t k) {
        return Pair{load_up_to(x + i, k), load_up_to(y + i, k)};
      },
      [](Pair p) { return add(p.a, p.b); }
  );
}

/// x / (1 + e^-x)
inline F silu(F x) {
  F e = exp(sub(set(0.0f), x));
  return div(x, add(set(1.0f), e));
}

/// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
inline F gelu_tanh(F x) {
  F cube = mul(mul(x, x), x);
  F inner = mul(set(0.7978845608f), fma(set(0.044715f), cube, x));
  return mul(mul(set(0.5f), x), add(set(1.0f), tanh(inner)));
}

template <F (*Function)(F)>
inline void gate_array(
    const float* gate, const float* up, std::size_t n, float* out
) {
  struct Pair {
    F gate, up;
  };
  for_lanes(
      n,
      out,
      [=](std::size_t i, std::size_t k) {
        return Pair{load_up_to(gate + i, k), load_up_to(up + i, k)};
      },
      [](Pair p) { return mul(Function(p.gate), p.up); }
  );
}

inline void to_half_array(const float* x, std::size_t n, std::uint16_t* y) {
  std::size_t i = 0;
  F most = set(65504.0f);
  F least = set(-65504.0f);
  for (; i + kLanes <= n; i += kLanes) {
    store_half(y + i, min(most, max(least, load(x + i))));
  }
  if (i < n) {
    std::uint16_t rest[kLanes];
    store_half(rest, min(most, max(least, load_first(x + i, n - i))));
    for (std::size_t k = 0; i + k < n; ++k) y[i + k] = rest[k];
  }
}

}  // namespace afterglow::AFTERGLOW_TARGET
