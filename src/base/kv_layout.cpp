#include "base/kv_layout.h"

#include "base/check.h"

namespace afterglow {

std::size_t size_of(KvType type) {
  return type == KvType::kF32 ? 4 : 2;
}

const char* to_string(KvType type) {
  switch (type) {
    case KvType::kF16:
      return "F16";
    case KvType::kBF16:
      return "BF16";
    case KvType::kF32:
      return "F32";
  }
  return "unknown";
}

std::size_t KvLayout::k_bytes(std::size_t layer, std::size_t width) const {
  const LayerKv& kv = layers[layer];
  return std::size_t{kv.kv_heads} * kv.k_dim * width * size_of(kv.type);
}

std::size_t KvLayout::v_bytes(std::size_t layer, std::size_t width) const {
  const LayerKv& kv = layers[layer];
  return std::size_t{kv.kv_heads} * kv.v_dim * width * size_of(kv.type);
}

std::size_t KvLayout::k_offset(std::size_t layer, std::size_t width) const {
  std::size_t offset = 0;
  for (std::size_t i = 0; i < layer; ++i) {
    offset += k_bytes(i, width) + v_bytes(i, width);
  }
  return offset;
}

std::size_t KvLayout::v_offset(std::size_t layer, std::size_t width) const {
  return k_offset(layer, width) + k_bytes(layer, width);
}

std::size_t KvLayout::block_bytes(std::size_t width) const {
  return k_offset(layers.size(), width);
}

std::size_t KvLayout::width_for(std::size_t tokens) {
  CHECK(tokens > 0 && tokens <= kPageTokens);
  return (tokens + kTailRounding - 1) / kTailRounding * kTailRounding;
}

std::string KvLayout::describe() const {
  std::string text = cacheable ? "cacheable" : "uncacheable";
  for (const LayerKv& kv : layers) {
    text += ";" + std::to_string(kv.kv_heads) + "x" + std::to_string(kv.k_dim) +
            "+" + std::to_string(kv.v_dim) + " " + to_string(kv.type) +
            " window " + std::to_string(kv.window);
  }
  return text;
}

}  // namespace afterglow
