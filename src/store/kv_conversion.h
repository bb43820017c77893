#pragma once

#include <cstddef>

#include "base/kv_layout.h"
#include "base/page.h"
#include "base/result.h"
#include "base/token.h"

namespace afterglow {

/// K's or V's part of a page: where its values lie.
struct KvPart {
  std::size_t dim = 0;
  bool is_k = false;

  /// The place of a value, counted in values from the part's start.
  std::size_t at(std::size_t head, std::size_t token, std::size_t d) const {
    return is_k ? (head * dim + d) * kPageTokens + token
                : (head * kPageTokens + token) * dim + d;
  }
};

/// Whether two layouts keep the same number of values in the same places,
/// whatever their types, for all tokens.
/// Errors: kInvalidArgument, saying layer and sizes ("3 layers, but the model
/// has 4"); kUnsupported where the model's attention has a window.
Status check_same_shapes(const KvLayout& given, const KvLayout& model);

/// Requires: same shapes.
bool have_same_types(const KvLayout& a, const KvLayout& b);

/// Copies the KV of a page's first `tokens` tokens, converting types.
/// Requires: same shapes; pages of those layouts.
/// Errors: kCorrupt for a value that is not finite or does not fit, naming
/// token and layer.
Status convert_page(
    const Page& from,
    const KvLayout& from_layout,
    const KvLayout& to_layout,
    std::size_t tokens,
    Page& to
);

}  // namespace afterglow
