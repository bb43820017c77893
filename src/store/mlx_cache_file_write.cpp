#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "store/mlx_cache_file.h"
#include "store/mlx_cache_file_stamp.h"

namespace afterglow {

namespace {

/// Names, types, shapes and places of all arrays: K and V layer by layer,
/// then the numbers of tokens.
std::vector<MlxCacheHeader::Layer> plan_layers(
    const KvLayout& layout, std::size_t tokens
) {
  std::vector<MlxCacheHeader::Layer> layers(layout.layers.size());
  std::uint64_t at = 0;
  auto place = [&](TensorEntry& tensor, std::size_t layer, int part) {
    tensor.name = std::to_string(layer) + "." + std::to_string(part);
    tensor.begin = at;
    at += mlx_element_bytes(tensor.dtype);
    for (std::uint64_t dimension : tensor.shape) {
      at = tensor.begin + (at - tensor.begin) * dimension;
    }
    tensor.end = at;
  };
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerKv& kv = layout.layers[i];
    std::string type = to_string(kv.type);
    layers[i].k = {"", type, {1, kv.kv_heads, tokens, kv.k_dim}};
    layers[i].v = {"", type, {1, kv.kv_heads, tokens, kv.v_dim}};
    place(layers[i].k, i, 0);
    place(layers[i].v, i, 1);
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layers[i].offset = TensorEntry{"", "I32", {}};
    place(*layers[i].offset, i, 2);
  }
  return layers;
}

/// Copies one block's K and V of a layer to their places in [heads][tokens]
/// [dim].
void gather(
    const LayerKv& kv,
    const KvSource::Part& part,
    std::size_t first,
    std::size_t tokens,
    std::span<std::byte> k,
    std::span<std::byte> v
) {
  std::size_t element = size_of(kv.type);
  std::size_t count = std::min(kPageTokens, tokens - first);
  CHECK(count <= part.width);
  for (std::size_t head = 0; head < kv.kv_heads; ++head) {
    std::size_t row = head * tokens + first;
    std::memcpy(
        v.data() + row * kv.v_dim * element,
        part.v.data() + head * part.width * kv.v_dim * element,
        count * kv.v_dim * element
    );
    for (std::size_t d = 0; d < kv.k_dim; ++d) {
      const std::byte* from =
          part.k.data() + (head * kv.k_dim + d) * part.width * element;
      std::byte* to = k.data() + (row * kv.k_dim + d) * element;
      for (std::size_t t = 0; t < count; ++t) {
        std::memcpy(to + t * kv.k_dim * element, from + t * element, element);
      }
    }
  }
}

std::array<std::byte, 4> int32_bytes(std::size_t value) {
  std::array<std::byte, 4> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(value >> (8 * i));
  }
  return bytes;
}

}  // namespace

Status write_mlx_cache_file(
    File& file,
    const KvLayout& layout,
    const MlxCacheStamp& stamp,
    const MlxCacheNotes& notes,
    KvSource& source
) {
  std::size_t tokens = stamp.tokens.size();
  CHECK(tokens > 0 && !layout.layers.empty());
  MlxCacheHeader header;
  header.layers = plan_layers(layout, tokens);
  std::vector<std::uint64_t> sums;
  // Sums have a fixed length: the header does not grow with their values.
  auto text_with_sums = [&] {
    sums.resize(3 * header.layers.size());
    header.metadata = stamp_metadata(stamp, sums);
    header.metadata.insert(header.metadata.end(), notes.begin(), notes.end());
    return format_mlx_cache_header(header);
  };
  std::uint64_t data_at = 8 + text_with_sums().size();
  sums.clear();
  auto write = [&](const TensorEntry& tensor,
                   std::span<const std::byte> bytes) {
    CHECK(bytes.size() == tensor.end - tensor.begin);
    sums.push_back(xxh3_64(bytes));
    return file.write_at(data_at + tensor.begin, bytes);
  };
  for (std::size_t i = 0; i < header.layers.size(); ++i) {
    const MlxCacheHeader::Layer& layer = header.layers[i];
    std::vector<std::byte> k(layer.k.end - layer.k.begin);
    std::vector<std::byte> v(layer.v.end - layer.v.begin);
    for (std::size_t block = 0; block < pages_for(tokens); ++block) {
      auto part = source.read(block, i);
      if (!part) {
        return part.error();
      }
      gather(layout.layers[i], *part, block * kPageTokens, tokens, k, v);
    }
    if (Status written = write(layer.k, k); !written) {
      return written;
    }
    if (Status written = write(layer.v, v); !written) {
      return written;
    }
  }
  auto count = int32_bytes(tokens);
  for (const MlxCacheHeader::Layer& layer : header.layers) {
    if (Status written = write(*layer.offset, count); !written) {
      return written;
    }
  }
  // Last, so that a file without all its data has no header either.
  std::string text = text_with_sums();
  set_stamp_sum(text, stamp_sum(text));
  CHECK(8 + text.size() == data_at);
  std::vector<std::byte> head(8);
  std::uint64_t length = text.size();
  for (std::size_t i = 0; i < 8; ++i) {
    head[i] = static_cast<std::byte>(length >> (8 * i));
  }
  auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  head.insert(head.end(), bytes.begin(), bytes.end());
  return file.write_at(0, head);
}

}  // namespace afterglow
