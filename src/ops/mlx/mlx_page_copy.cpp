#include "ops/mlx/mlx_page_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "ops/mlx/mlx_host_array.h"

namespace afterglow {
namespace {

// One side of a tile: both its rows and its columns stay in the first cache.
constexpr std::size_t kTile = 32;

/// to[c][r] = from[r][c]. Units: strides in elements.
template <class T>
void transpose(
    const T* from,
    std::size_t from_stride,
    T* to,
    std::size_t to_stride,
    std::size_t rows,
    std::size_t cols
) {
  for (std::size_t r0 = 0; r0 < rows; r0 += kTile) {
    const std::size_t r1 = std::min(rows, r0 + kTile);
    for (std::size_t c0 = 0; c0 < cols; c0 += kTile) {
      const std::size_t c1 = std::min(cols, c0 + kTile);
      for (std::size_t c = c0; c < c1; ++c) {
        for (std::size_t r = r0; r < r1; ++r) {
          to[c * to_stride + r] = from[r * from_stride + c];
        }
      }
    }
  }
}

/// A layer of element type T, all offsets in elements.
template <class T>
struct LayerCopy {
  std::size_t heads, k_dim, v_dim, capacity;

  void from_page(
      const T* page_k,
      const T* page_v,
      T* k,
      T* v,
      std::size_t first,
      std::size_t count
  ) const {
    for (std::size_t h = 0; h < heads; ++h) {
      transpose(
          page_k + h * k_dim * kPageTokens,
          kPageTokens,
          k + (h * capacity + first) * k_dim,
          k_dim,
          k_dim,
          count
      );
      std::copy_n(
          page_v + h * kPageTokens * v_dim,
          count * v_dim,
          v + (h * capacity + first) * v_dim
      );
    }
  }

  void to_page(
      const T* k,
      const T* v,
      T* page_k,
      T* page_v,
      std::size_t first,
      std::size_t count
  ) const {
    for (std::size_t h = 0; h < heads; ++h) {
      T* keys = page_k + h * k_dim * kPageTokens;
      transpose(
          k + (h * capacity + first) * k_dim,
          k_dim,
          keys,
          kPageTokens,
          count,
          k_dim
      );
      for (std::size_t d = 0; d < k_dim; ++d) {
        std::fill_n(keys + d * kPageTokens + count, kPageTokens - count, T{});
      }
      T* values = page_v + h * kPageTokens * v_dim;
      std::copy_n(v + (h * capacity + first) * v_dim, count * v_dim, values);
      std::fill_n(values + count * v_dim, (kPageTokens - count) * v_dim, T{});
    }
  }

  void clear_from(T* k, T* v, std::size_t tokens) const {
    const std::size_t rest = capacity - tokens;
    for (std::size_t h = 0; h < heads; ++h) {
      std::fill_n(k + (h * capacity + tokens) * k_dim, rest * k_dim, T{});
      std::fill_n(v + (h * capacity + tokens) * v_dim, rest * v_dim, T{});
    }
  }
};

/// Calls body with an unsigned integer as wide as an element.
template <class Body>
void with_element(KvType type, const Body& body) {
  if (size_of(type) == 4) {
    body(std::uint32_t{});
  } else {
    body(std::uint16_t{});
  }
}

}  // namespace

std::pair<mx::array, mx::array> layer_from_pages(
    const KvLayout& layout,
    std::size_t layer,
    std::span<const PagePtr> pages,
    std::size_t tokens,
    std::size_t capacity
) {
  const LayerKv& kv = layout.layers[layer];
  const auto shape = [&](std::uint32_t dim) {
    return mx::Shape{
        1,
        static_cast<int>(kv.kv_heads),
        static_cast<int>(capacity),
        static_cast<int>(dim)};
  };
  HostArray k(shape(kv.k_dim), dtype_of(kv.type));
  HostArray v(shape(kv.v_dim), dtype_of(kv.type));
  const std::size_t k_offset = layout.k_offset(layer, kPageTokens);
  const std::size_t v_offset = layout.v_offset(layer, kPageTokens);
  with_element(kv.type, [&]<class T>(T) {
    const LayerCopy<T> copy{kv.kv_heads, kv.k_dim, kv.v_dim, capacity};
    T* to_k = reinterpret_cast<T*>(k.data());
    T* to_v = reinterpret_cast<T*>(v.data());
    for (std::size_t i = 0; i < pages.size(); ++i) {
      const std::size_t first = i * kPageTokens;
      copy.from_page(
          reinterpret_cast<const T*>(pages[i]->data() + k_offset),
          reinterpret_cast<const T*>(pages[i]->data() + v_offset),
          to_k,
          to_v,
          first,
          std::min(kPageTokens, tokens - first)
      );
    }
    copy.clear_from(to_k, to_v, tokens);
  });
  return {std::move(k).take(), std::move(v).take()};
}

void layer_to_page(
    const KvLayout& layout,
    std::size_t layer,
    const mx::array& k,
    const mx::array& v,
    std::size_t first,
    std::size_t count,
    Page& page
) {
  CHECK(
      k.flags().row_contiguous && v.flags().row_contiguous,
      "KV arrays are kept row by row"
  );
  const LayerKv& kv = layout.layers[layer];
  const auto capacity = static_cast<std::size_t>(k.shape(2));
  with_element(kv.type, [&]<class T>(T) {
    const LayerCopy<T> copy{kv.kv_heads, kv.k_dim, kv.v_dim, capacity};
    copy.to_page(
        k.data<T>(),
        v.data<T>(),
        reinterpret_cast<T*>(page.data() + layout.k_offset(layer, kPageTokens)),
        reinterpret_cast<T*>(page.data() + layout.v_offset(layer, kPageTokens)),
        first,
        count
    );
  });
}

}  // namespace afterglow
