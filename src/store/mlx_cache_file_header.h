#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/tensor_header.h"

namespace afterglow {

/// The safetensors header of a file that mlx_lm's save_prompt_cache writes,
/// or one that its load_prompt_cache reads. Arrays are named L.0 (K), L.1 (V),
/// both [1, kv_heads, S, dim], and L.2 (how many of the S positions hold
/// tokens). The metadata is a tree, flattened: 0.<key> the user's strings,
/// 1.L the layers' classes, 2 the list of arrays that are scalars. Files of
/// mlx_lm before 0.32 have no L.2, as S is exact there, and the tree's parts
/// are the layers' meta states, the user's strings, the classes.
/// Source: mlx_lm 0.32.2, mlx_lm/models/cache.py
struct MlxCacheHeader {
  struct Layer {
    TensorEntry k;
    TensorEntry v;
    std::optional<TensorEntry> offset;  // none in the older layout
  };
  std::vector<std::pair<std::string, std::string>> metadata;  // the user's
  std::vector<Layer> layers;

  const std::string* find(std::string_view key) const;
};

/// JSON, `__metadata__` first and in it the user's strings in their order,
/// padded with spaces so that data begins at a multiple of 64 bytes.
/// Requires: all layers have an offset.
std::string format_mlx_cache_header(const MlxCacheHeader& header);

/// Checks names, classes, types, shapes and that the arrays fill data_bytes
/// without gap or overlap; the text may come from anyone.
/// Errors: kCorrupt; kUnsupported for caches other than plain KV, naming the
/// class.
Result<MlxCacheHeader> parse_mlx_cache_header(
    std::string_view json, std::uint64_t data_bytes
);

/// Bytes of an element of F16, BF16, F32, I32 or I64; 0 for other types.
std::uint64_t mlx_element_bytes(std::string_view dtype);

}  // namespace afterglow
