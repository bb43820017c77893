#include "ops/mlx/mlx_attention.h"

#include <algorithm>
#include <optional>

namespace afterglow {
namespace {

/// True where query i, at position total - n + i, sees key first + j.
/// Shape: [n, total - first].
mx::array visible_keys(
    int n, int total, int first, int window, mx::Stream stream
) {
  const mx::array queries = mx::expand_dims(
      mx::arange(total - n, total, 1, mx::int32, stream), 1, stream
  );
  const mx::array keys = mx::expand_dims(
      mx::arange(first, total, 1, mx::int32, stream), 0, stream
  );
  mx::array mask = mx::less_equal(keys, queries, stream);
  if (window != 0) {
    const mx::array oldest =
        mx::subtract(queries, mx::array(window, mx::int32), stream);
    mask = mx::logical_and(mask, mx::greater(keys, oldest, stream), stream);
  }
  return mask;
}

/// Attention with capped scores, which MLX's fused form does not have.
/// Shape: as attend_span, with the mask [n, keys]; out [1, heads, n, d].
mx::array capped_attention(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    const mx::array& mask,
    const std::optional<mx::array>& sinks,
    const Attention& attention,
    mx::Stream s
) {
  const int kv_heads = k.shape(1);
  const int repeats = q.shape(1) / kv_heads;
  const int n = q.shape(2);
  const mx::array grouped =
      mx::reshape(q, {1, kv_heads, repeats, n, q.shape(3)}, s);
  const mx::array keys = mx::swapaxes(mx::expand_dims(k, 2, s), -1, -2, s);
  mx::array scores = mx::astype(mx::matmul(grouped, keys, s), mx::float32, s);
  scores =
      mx::multiply(scores, mx::array(attention.scale / attention.softcap), s);
  scores = mx::multiply(mx::tanh(scores, s), mx::array(attention.softcap), s);
  const float lowest = -std::numeric_limits<float>::infinity();
  scores = mx::where(mask, scores, mx::array(lowest), s);
  if (sinks) {  // as one more key, whose weight is dropped again
    const mx::array by_head = mx::reshape(
        mx::astype(*sinks, mx::float32, s), {1, kv_heads, repeats, 1, 1}, s
    );
    const mx::array column =
        mx::broadcast_to(by_head, {1, kv_heads, repeats, n, 1}, s);
    scores = mx::concatenate({scores, column}, -1, s);
  }
  mx::array weights = mx::softmax(scores, std::vector<int>{-1}, true, s);
  weights = mx::slice(
      weights, {0, 0, 0, 0, 0}, {1, kv_heads, repeats, n, k.shape(2)}, s
  );
  weights = mx::astype(weights, q.dtype(), s);
  const mx::array out = mx::matmul(weights, mx::expand_dims(v, 2, s), s);
  return mx::reshape(out, q.shape(), s);
}

mx::array keys_from(const mx::array& a, int first, mx::Stream stream) {
  if (first == 0) {
    return a;
  }
  return mx::slice(a, {0, 0, first, 0}, a.shape(), stream);
}

}  // namespace

const MlxRope::Entry& MlxRope::entry_for(const Rope& rope, int head_dim) {
  for (const Entry& entry : entries_) {
    if (entry.head_dim == head_dim && entry.rope.scale == rope.scale &&
        entry.rope.inv_freq == rope.inv_freq) {
      return entry;
    }
  }
  std::vector<float> wavelengths;
  for (double frequency : rope.inv_freq) {
    wavelengths.push_back(static_cast<float>(1.0 / frequency));
  }
  std::vector<float> scale(static_cast<std::size_t>(head_dim), 1.0F);
  const std::size_t turned = std::min(2 * wavelengths.size(), scale.size());
  std::fill_n(scale.begin(), turned, static_cast<float>(rope.scale));
  entries_.push_back(
      {rope,
       head_dim,
       mx::array(wavelengths.data(), {static_cast<int>(wavelengths.size())}),
       mx::array(scale.data(), {head_dim})}
  );
  return entries_.back();
}

mx::array MlxRope::rotate(
    const mx::array& x, const Rope& rope, std::size_t offset
) {
  const Entry& entry = entry_for(rope, x.shape(3));
  mx::array out = mx::fast::rope(
      x,
      2 * static_cast<int>(rope.inv_freq.size()),
      rope.interleaved,
      std::nullopt,
      1.0F,
      static_cast<int>(offset),
      entry.wavelengths,
      stream_
  );
  if (rope.scale != 1.0) {
    out =
        mx::multiply(out, mx::astype(entry.scale, x.dtype(), stream_), stream_);
  }
  return out;
}

mx::array attend_span(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    const std::optional<mx::array>& sinks,
    const Attention& attention,
    mx::Stream stream
) {
  const int n = q.shape(2);
  const int total = k.shape(2);
  const int window = static_cast<int>(
      std::min<std::uint32_t>(attention.window, std::numeric_limits<int>::max())
  );
  // Keys no query sees are not even read.
  const int first = window == 0 ? 0 : std::max(0, total - n + 1 - window);
  const mx::array keys = keys_from(k, first, stream);
  const mx::array values = keys_from(v, first, stream);
  const bool cuts = window != 0 && total - first > window;

  mx::array out = q;
  if (attention.softcap != 0) {
    const mx::array mask = visible_keys(n, total, first, window, stream);
    out = capped_attention(q, keys, values, mask, sinks, attention, stream);
  } else {
    std::optional<mx::array> mask;
    if (cuts) {
      mask = visible_keys(n, total, first, window, stream);
    }
    out = mx::fast::scaled_dot_product_attention(
        q,
        keys,
        values,
        attention.scale,
        !cuts && n > 1 ? "causal" : "",
        mask,
        sinks,
        false,
        stream
    );
  }
  return mx::reshape(
      mx::transpose(out, {0, 2, 1, 3}, stream),
      {n, q.shape(1) * v.shape(3)},
      stream
  );
}

}  // namespace afterglow
