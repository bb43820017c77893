// Included once per target, behind its lanes, math/exp_body.h,
// linear/panel_body.h and elementwise/elementwise_body.h.
namespace afterglow::AFTERGLOW_TARGET {

inline constexpr std::int32_t kPageKeys = 256;

/// Scores to weights in place for vectors [v, end) of 16 keys of one row.
inline void weigh_row(
    float* scores,
    std::int32_t v,
    std::int32_t end,
    std::int32_t first,
    std::int32_t last,
    float softcap,
    float* largest,
    float* sum
) {
  const F nothing = set(-__builtin_inff());
  if (softcap != 0) {
    softcap_array(scores + v * 16, (end - v) * 16, softcap);
  }
  F most = nothing;
  for (std::int32_t i = v; i < end; ++i) {
    Mask seen = lanes_between(first - 16 * i, last - 16 * i);
    most = max(most, select(seen, load(scores + 16 * i), nothing));
  }
  *largest = reduce_max(most);
  F m = set(*largest);
  F total = set(0.0f);
  for (std::int32_t i = v; i < end; ++i) {
    Mask seen = lanes_between(first - 16 * i, last - 16 * i);
    F weight = exp(sub(load(scores + 16 * i), m));
    weight = select(seen, weight, set(0.0f));
    store(scores + 16 * i, weight);
    total = add(total, weight);
  }
  *sum = reduce_add(total);
}

template <class T>
inline void attend_elements(const AttendPage& a, const T* k, const T* v) {
  std::int32_t low = kPageKeys;
  std::int32_t high = 0;
  for (std::size_t r = 0; r < a.rows; ++r) {
    if (a.first[r] < a.last[r]) {
      low = a.first[r] < low ? a.first[r] : low;
      high = a.last[r] > high ? a.last[r] : high;
    }
  }
  if (low >= high) {
    for (std::size_t r = 0; r < a.rows; ++r) a.sum[r] = 0;
    return;
  }
  alignas(64) float scores[kPanelRows * kPageKeys];
  std::int32_t from = low / 16;
  std::int32_t to = (high + 15) / 16;
  Panel<T> qk{
      a.q,
      a.k_dim,
      a.k_dim,
      k + from * 16,
      kPageKeys,
      16,
      scores + from * 16,
      kPageKeys,
      16};
  panel(qk, a.rows, to - from);
  for (std::size_t r = 0; r < a.rows; ++r) {
    float* row = scores + r * kPageKeys;
    if (a.first[r] < a.last[r]) {
      weigh_row(
          row,
          from,
          to,
          a.first[r],
          a.last[r],
          a.softcap,
          a.largest + r,
          a.sum + r
      );
    } else {
      a.sum[r] = 0;
      for (std::int32_t i = from; i < to; ++i) store(row + 16 * i, set(0.0f));
    }
  }
  Panel<T> pv{
      scores + low,
      kPageKeys,
      static_cast<std::size_t>(high - low),
      v + low * a.v_dim,
      a.v_dim,
      16,
      a.values,
      a.v_dim,
      16};
  panel(pv, a.rows, a.v_dim / 16);
}

inline void attend_page(const AttendPage& a) {
  if (a.half) {
    attend_elements(
        a, static_cast<const Half*>(a.k), static_cast<const Half*>(a.v)
    );
  } else {
    attend_elements(
        a, static_cast<const float*>(a.k), static_cast<const float*>(a.v)
    );
  }
}

inline float exp_one(float x) {
  float lanes[kLanes];
  store(lanes, exp(set(x)));
  return lanes[0];
}

/// Both sides are brought to the larger of the two largest scores.
inline void attend_add(
    const AttendTotal& total,
    float largest,
    float sum,
    const float* values,
    std::size_t v_dim
) {
  if (sum == 0) {
    return;
  }
  if (*total.sum == 0) {
    *total.largest = largest;
    *total.sum = sum;
    for (std::size_t i = 0; i < v_dim; i += 16) {
      store(total.values + i, load(values + i));
    }
    return;
  }
  float most = *total.largest > largest ? *total.largest : largest;
  float ours = exp_one(*total.largest - most);
  float theirs = exp_one(largest - most);
  *total.largest = most;
  *total.sum = __builtin_fmaf(*total.sum, ours, sum * theirs);
  F a = set(ours);
  F b = set(theirs);
  for (std::size_t i = 0; i < v_dim; i += 16) {
    F sum_of_both = fma(load(total.values + i), a, mul(load(values + i), b));
    store(total.values + i, sum_of_both);
  }
}

inline void attend_finish(
    const AttendTotal& total, std::size_t v_dim, float* out
) {
  F inverse = set(1.0f / *total.sum);
  for (std::size_t i = 0; i < v_dim; i += 16) {
    store(out + i, mul(load(total.values + i), inverse));
  }
}

}  // namespace afterglow::AFTERGLOW_TARGET
