#include "ops/mlx/mlx_kv.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <tuple>

#include "base/check.h"
#include "ops/mlx/mlx_host_array.h"
#include "ops/mlx/mlx_page_copy.h"

namespace afterglow {
namespace {

int to_int(std::size_t n) {
  return static_cast<int>(n);
}

/// Always larger than `tokens`: an update that covers its whole target would
/// become the array itself, with whatever strides it has.
std::size_t capacity_for(std::size_t tokens) {
  return (tokens / kPageTokens + 1) * kPageTokens;
}

mx::array first_tokens(
    const mx::array& a, std::size_t tokens, mx::Stream stream
) {
  mx::Shape stop = a.shape();
  stop[2] = to_int(tokens);
  return mx::slice(a, {0, 0, 0, 0}, stop, stream);
}

mx::array with_tokens(
    const mx::array& a,
    const mx::array& update,
    std::size_t first,
    mx::Stream stream
) {
  mx::Shape stop = a.shape();
  stop[2] = to_int(first) + update.shape(2);
  return mx::slice_update(a, update, {0, 0, to_int(first), 0}, stop, stream);
}

/// The array itself where eval reached it, else the one it was to replace.
std::optional<mx::array> whole(const mx::array& a) {
  if (a.status() != mx::array::unscheduled) {
    return a;
  }
  if (a.has_primitive() && !a.inputs().empty()) {
    const mx::array before = a.inputs().front();
    if (before.status() != mx::array::unscheduled &&
        before.shape() == a.shape()) {
      return before;
    }
  }
  return std::nullopt;
}

}  // namespace

MlxKvState::MlxKvState(
    const Ops* owner, KvLayout layout, PagePool& pool, mx::Stream stream
)
    : owner_(owner),
      layout_(std::move(layout)),
      pool_(&pool),
      stream_(stream),
      layers_(layout_.layers.size()) {
  CHECK(pool.page_bytes() == layout_.page_bytes(), "a pool of other pages");
}

void MlxKvState::restore(std::span<const PagePtr> pages, std::size_t tokens) {
  CHECK(length_ == 0, "restore into a sequence that has tokens");
  CHECK(pages.size() == pages_for(tokens), "pages that do not fit tokens");
  if (tokens == 0) {
    return;
  }
  const std::size_t capacity = capacity_for(tokens);
  std::vector<Layer> layers(layers_.size());
  try {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      std::tie(layers[i].k, layers[i].v) =
          layer_from_pages(layout_, i, pages, tokens, capacity);
    }
  } catch (const std::exception& e) {
    broken_ = e.what();
    if (broken_.empty()) {
      broken_ = "unknown failure";
    }
    layers.assign(layers_.size(), Layer{});
  }
  layers_ = std::move(layers);
  capacity_ = broken_.empty() ? capacity : 0;
  length_ = tokens;
  sealed_.assign(pages.begin(), pages.end());
  sealed_.resize(tokens / kPageTokens);
}

PagePtr MlxKvState::seal(std::size_t index) {
  const std::size_t first = index * kPageTokens;
  CHECK(first < length_, "seal of a page without tokens");
  CHECK(broken_.empty(), "seal of a broken sequence");
  const bool full = first + kPageTokens <= length_;
  if (full && index < sealed_.size()) {
    if (PagePtr page = sealed_[index].lock()) {
      return page;
    }
  }
  const std::size_t count = std::min(kPageTokens, length_ - first);
  std::shared_ptr<Page> page = pool_->make();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    layer_to_page(layout_, i, *layer.k, *layer.v, first, count, *page);
  }
  if (full) {
    sealed_.resize(std::max(sealed_.size(), index + 1));
    sealed_[index] = page;
  }
  return page;
}

void MlxKvState::truncate(std::size_t tokens) {
  CHECK(tokens <= length_, "truncate cannot add tokens");
  length_ = tokens;
  sealed_.resize(std::min(sealed_.size(), tokens / kPageTokens));
}

std::size_t MlxKvState::bytes() const {
  std::size_t total = 0;
  for (const Layer& layer : layers_) {
    total += layer.k ? layer.k->nbytes() + layer.v->nbytes() : 0;
  }
  return total;
}

void MlxKvState::reserve(std::size_t tokens) {
  if (length_ + tokens < capacity_) {
    return;
  }
  const std::size_t capacity = capacity_for(length_ + tokens);
  // Layer by layer, so that at most one is held twice. A layer that is ahead
  // of capacity_ after a failure here is grown no further next time.
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const LayerKv& kv = layout_.layers[i];
    const auto grow = [&](std::optional<mx::array>& a, std::uint32_t dim) {
      const int have = a ? a->shape(2) : 0;
      if (have >= to_int(capacity)) {
        return;
      }
      mx::array grown = mx::zeros(
          {1, to_int(kv.kv_heads), to_int(capacity) - have, to_int(dim)},
          dtype_of(kv.type),
          stream_
      );
      if (a) {
        grown = mx::concatenate({*a, grown}, 2, stream_);
      }
      mx::eval(grown);
      a = grown;
    };
    grow(layers_[i].k, kv.k_dim);
    grow(layers_[i].v, kv.v_dim);
  }
  capacity_ = capacity;
}

std::pair<mx::array, mx::array> MlxKvState::append(
    std::size_t layer, const mx::array& k, const mx::array& v
) {
  CHECK(layer < layers_.size(), "attention in a layer the layout lacks");
  Layer& to = layers_[layer];
  CHECK(!to.appended, "two appends to a layer in a step");
  const std::size_t total = length_ + static_cast<std::size_t>(k.shape(2));
  CHECK(total < capacity_, "append without reserve");
  to.recorded.emplace(
      with_tokens(*to.k, k, length_, stream_),
      with_tokens(*to.v, v, length_, stream_)
  );
  to.appended = true;
  return {
      first_tokens(to.recorded->first, total, stream_),
      first_tokens(to.recorded->second, total, stream_)};
}

void MlxKvState::collect(std::vector<mx::array>& outputs) {
  for (Layer& layer : layers_) {
    if (layer.recorded) {
      layer.k = std::move(layer.recorded->first);
      layer.v = std::move(layer.recorded->second);
      layer.recorded.reset();
      outputs.push_back(*layer.k);
      outputs.push_back(*layer.v);
    }
  }
}

void MlxKvState::recover() {
  for (Layer& layer : layers_) {
    if (!layer.k) {
      continue;
    }
    layer.k = whole(*layer.k);
    layer.v = whole(*layer.v);
    if (!layer.k || !layer.v) {
      layer.k.reset();
      layer.v.reset();
      broken_ = "a failed step lost the sequence's KV";
    }
  }
}

void MlxKvState::finish(bool commit, std::size_t tokens) {
  for (Layer& layer : layers_) {
    CHECK(!commit || layer.appended, "a step that skipped a layer");
    CHECK(!commit || !layer.recorded, "a step that was not computed");
    layer.recorded.reset();
    layer.appended = false;
  }
  if (commit) {
    length_ += tokens;
  }
}

}  // namespace afterglow
