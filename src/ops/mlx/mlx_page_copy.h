#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "base/kv_layout.h"
#include "base/page.h"
#include "mlx/mlx.h"

namespace afterglow {

namespace mx = ::mlx::core;

/// K and V of a layer from the first `tokens` tokens of pages.
/// Shape: [1, kv_heads, capacity, dim] each; what lies behind `tokens` is
/// zero. Requires: tokens <= capacity, pages enough for them.
/// Throws what MLX's allocator throws.
std::pair<mx::array, mx::array> layer_from_pages(
    const KvLayout& layout,
    std::size_t layer,
    std::span<const PagePtr> pages,
    std::size_t tokens,
    std::size_t capacity
);

/// Writes tokens [first, first + count) of a layer as the first of a page,
/// and zeros behind them. Requires: k and v evaluated, as above.
void layer_to_page(
    const KvLayout& layout,
    std::size_t layer,
    const mx::array& k,
    const mx::array& v,
    std::size_t first,
    std::size_t count,
    Page& page
);

}  // namespace afterglow
