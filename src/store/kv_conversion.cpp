#include "store/kv_conversion.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/check.h"
#include "store/mlx_cache_file_values.h"

namespace afterglow {
namespace {

std::string describe(const LayerKv& kv) {
  return std::to_string(kv.kv_heads) + " heads of " + std::to_string(kv.k_dim) +
         " and " + std::to_string(kv.v_dim);
}

struct Values {
  std::size_t offset;  // bytes from the page's start
  KvType type;
};

/// Returns the first token with a value that cannot be converted, or
/// `tokens`.
std::size_t convert_part(
    const KvPart& part,
    std::size_t heads,
    const Page& from,
    const Values& source,
    Page& to,
    const Values& target,
    std::size_t tokens
) {
  std::size_t from_bytes = size_of(source.type);
  std::size_t to_bytes = size_of(target.type);
  for (std::size_t head = 0; head < heads; ++head) {
    for (std::size_t token = 0; token < tokens; ++token) {
      for (std::size_t d = 0; d < part.dim; ++d) {
        std::size_t index = part.at(head, token, d);
        std::uint32_t bits = 0;
        std::uint32_t result = 0;
        std::memcpy(
            &bits, from.data() + source.offset + index * from_bytes, from_bytes
        );
        if (!convert_kv(source.type, bits, target.type, result)) {
          return token;
        }
        std::memcpy(
            to.data() + target.offset + index * to_bytes, &result, to_bytes
        );
      }
    }
  }
  return tokens;
}

}  // namespace

Status check_same_shapes(const KvLayout& given, const KvLayout& model) {
  if (given.layers.size() != model.layers.size()) {
    return Error{
        Code::kInvalidArgument,
        std::to_string(given.layers.size()) + " layers, but the model has " +
            std::to_string(model.layers.size())};
  }
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const LayerKv& a = given.layers[i];
    const LayerKv& b = model.layers[i];
    if (a.kv_heads != b.kv_heads || a.k_dim != b.k_dim || a.v_dim != b.v_dim) {
      return Error{
          Code::kInvalidArgument,
          "layer " + std::to_string(i) + ": " + describe(a) +
              ", but the model has " + describe(b)};
    }
    if (a.window != b.window) {
      return Error{
          Code::kUnsupported,
          "layer " + std::to_string(i) +
              ": the model's attention has a window there, which plain KV "
              "cannot stand for"};
    }
  }
  return {};
}

bool have_same_types(const KvLayout& a, const KvLayout& b) {
  return std::equal(
      a.layers.begin(),
      a.layers.end(),
      b.layers.begin(),
      b.layers.end(),
      [](const LayerKv& x, const LayerKv& y) { return x.type == y.type; }
  );
}

Status convert_page(
    const Page& from,
    const KvLayout& from_layout,
    const KvLayout& to_layout,
    std::size_t tokens,
    Page& to
) {
  CHECK(tokens <= kPageTokens);
  CHECK(from.size() == from_layout.page_bytes());
  CHECK(to.size() == to_layout.page_bytes());
  for (std::size_t i = 0; i < to_layout.layers.size(); ++i) {
    const LayerKv& kv = to_layout.layers[i];
    KvType from_type = from_layout.layers[i].type;
    for (bool is_k : {true, false}) {
      auto offset = [&](const KvLayout& layout) {
        return is_k ? layout.k_offset(i, kPageTokens)
                    : layout.v_offset(i, kPageTokens);
      };
      std::size_t bad = convert_part(
          {is_k ? kv.k_dim : kv.v_dim, is_k},
          kv.kv_heads,
          from,
          {offset(from_layout), from_type},
          to,
          {offset(to_layout), kv.type},
          tokens
      );
      if (bad < tokens) {
        return Error{
            Code::kCorrupt,
            "layer " + std::to_string(i) + ": a value of token " +
                std::to_string(bad) + " of the page does not fit " +
                to_string(kv.type)};
      }
    }
  }
  return {};
}

}  // namespace afterglow
