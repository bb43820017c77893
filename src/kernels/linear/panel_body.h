// Included once per target, behind its lanes.
namespace afterglow::AFTERGLOW_TARGET {

// Elements that the panels of linear layers and attention come in.
struct Half {
  std::uint16_t bits;
};
struct Bfloat {
  std::uint16_t bits;
};
inline F load_as_float(const float* p) {
  return load(p);
}
inline F load_as_float(const Half* p) {
  return load_half(&p->bits);
}
inline F load_as_float(const Bfloat* p) {
  return load_bfloat(&p->bits);
}

/// c[q][u][lane] = sum over i ascending of a[q][i] b[i][u][lane], each step
/// one fma from 0 on. Steps are distances in elements: of b, i is b_step and
/// u is b_vector apart; of c, q is c_step and u is c_vector apart.
template <class T>
struct Panel {
  const float* a;
  std::size_t a_step;
  std::size_t count;
  const T* b;
  std::size_t b_step;
  std::size_t b_vector;
  float* c;
  std::size_t c_step;
  std::size_t c_vector;
};

template <int Q, int U, class T>
inline void panel_tile(
    const Panel<T>& p, std::size_t vector, std::size_t vectors
) {
  // What comes next, which the processor does not guess where rows lie far
  // apart: the next vectors of these rows, at last the next row.
  std::size_t next = vector + U < vectors ? U * p.b_vector : p.b_step;
  constexpr int kVectorsOfLine = sizeof(T) == 2 ? 2 : 1;
  F acc[Q][U];
#pragma GCC unroll 16
  for (int q = 0; q < Q; ++q) {
#pragma GCC unroll 16
    for (int u = 0; u < U; ++u) acc[q][u] = set(0.0f);
  }
  const float* a = p.a;
  const T* b = p.b + vector * p.b_vector;
  for (std::size_t i = 0; i < p.count; ++i) {
    F row[U];
#pragma GCC unroll 16
    for (int u = 0; u < U; ++u) row[u] = load_as_float(b + u * p.b_vector);
#pragma GCC unroll 16
    for (int u = 0; u < U; u += kVectorsOfLine) {
      __builtin_prefetch(b + next + u * p.b_vector);
    }
#pragma GCC unroll 16
    for (int q = 0; q < Q; ++q) {
      F x = set(a[q * p.a_step]);
#pragma GCC unroll 16
      for (int u = 0; u < U; ++u) acc[q][u] = fma(x, row[u], acc[q][u]);
    }
    ++a;
    b += p.b_step;
  }
#pragma GCC unroll 16
  for (int q = 0; q < Q; ++q) {
#pragma GCC unroll 16
    for (int u = 0; u < U; ++u) {
      store(p.c + q * p.c_step + (vector + u) * p.c_vector, acc[q][u]);
    }
  }
}

/// Vectors of 16 lanes at once, such that the sums stay in registers.
constexpr int panel_vectors(int q) {
  int u = 1;
  while (2 * u * q <= kPanelSums) {
    u *= 2;
  }
  return u;
}

/// Vectors [vector, vectors), U at once and the rest by halves of that.
template <int Q, int U, class T>
inline void panel_rows(
    const Panel<T>& p, std::size_t vector, std::size_t vectors
) {
  for (; vector + U <= vectors; vector += U) {
    panel_tile<Q, U>(p, vector, vectors);
  }
  if constexpr (U > 1) {
    panel_rows<Q, U / 2>(p, vector, vectors);
  }
}

template <int Q, class T>
inline void panel_dispatch(
    const Panel<T>& p, std::size_t rows, std::size_t vectors
) {
  if (rows == Q) {
    panel_rows<Q, panel_vectors(Q)>(p, 0, vectors);
  } else if constexpr (Q > 1) {
    panel_dispatch<Q - 1>(p, rows, vectors);
  }
}

/// Requires: 1 <= rows <= kPanelRows.
template <class T>
inline void panel(const Panel<T>& p, std::size_t rows, std::size_t vectors) {
  panel_dispatch<kPanelRows>(p, rows, vectors);
}

}  // namespace afterglow::AFTERGLOW_TARGET
