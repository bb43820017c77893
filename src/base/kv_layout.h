#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/token.h"

namespace afterglow {

enum class KvType : std::uint8_t { kF16, kBF16, kF32 };

/// Bytes of one element.
std::size_t size_of(KvType type);
/// The safetensors name: "F16", "BF16" or "F32".
const char* to_string(KvType type);

/// The KV one layer keeps for each token.
struct LayerKv {
  std::uint32_t kv_heads = 0;
  std::uint32_t k_dim = 0;
  std::uint32_t v_dim = 0;
  KvType type = KvType::kF16;
  std::uint32_t window = 0;  // 0: full attention
};

/// How the KV of a page of kPageTokens tokens lies in memory and on disk:
/// for each layer K as [kv_heads][k_dim][width] (tokens run fastest), then V
/// as [kv_heads][width][v_dim]. A page in memory has width kPageTokens; a
/// tail block on disk may be narrower, always a multiple of kTailRounding.
/// Each part of a page starts at a multiple of kPartAlignment bytes; with
/// width a multiple of 64 that holds without padding.
struct KvLayout {
  static constexpr std::size_t kPartAlignment = 64;
  static constexpr std::size_t kTailRounding = 64;

  std::vector<LayerKv> layers;
  /// False when KV is not determined by tokens 0..t alone; such a model
  /// bypasses the cache.
  bool cacheable = true;

  /// Bytes of K (or V) of one layer at a width in tokens.
  std::size_t k_bytes(std::size_t layer, std::size_t width) const;
  std::size_t v_bytes(std::size_t layer, std::size_t width) const;
  /// Offset of a layer's K (or V) from the start of a block of that width.
  std::size_t k_offset(std::size_t layer, std::size_t width) const;
  std::size_t v_offset(std::size_t layer, std::size_t width) const;
  /// Bytes of a block of that width, all layers.
  std::size_t block_bytes(std::size_t width) const;
  std::size_t page_bytes() const { return block_bytes(kPageTokens); }
  /// n rounded up to what a block of n tokens stores.
  static std::size_t width_for(std::size_t tokens);

  /// A canonical text of all fields, for identities and messages.
  std::string describe() const;
};

}  // namespace afterglow
