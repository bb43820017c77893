#include "ops/cpu/cpu_kv.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace afterglow {
CpuKv::CpuKv(const KvLayout& layout, PagePool& pool)
    : layout_(layout), pool_(pool) {
  CHECK(
      pool.page_bytes() == layout.page_bytes(),
      "the pool makes pages of another layout"
  );
  for (std::size_t i = 0; i < layout_.layers.size(); ++i) {
    const LayerKv& kv = layout_.layers[i];
    std::size_t column = kPageTokens * size_of(kv.type);
    places_.push_back(
        {layout_.k_offset(i, kPageTokens),
         layout_.v_offset(i, kPageTokens),
         kv.k_dim * column,
         kv.v_dim * column}
    );
  }
}

CpuKv::Held CpuKv::new_page() {
  std::shared_ptr<Page> page = pool_.make();
  Page* writable = page.get();
  return {std::move(page), writable};
}

// Only what has been written is read.
CpuKv::Held CpuKv::copy_of(const Page& page, std::size_t tokens) {
  Held copy = new_page();
  for (std::size_t i = 0; i < layout_.layers.size(); ++i) {
    const LayerKv& kv = layout_.layers[i];
    std::size_t size = size_of(kv.type);
    for (std::size_t row = 0; row < std::size_t{kv.kv_heads} * kv.k_dim;
         ++row) {
      std::size_t at = places_[i].k + row * kPageTokens * size;
      std::memcpy(copy.writable->data() + at, page.data() + at, tokens * size);
    }
    for (std::size_t head = 0; head < kv.kv_heads; ++head) {
      std::size_t at = v_place(i, head);
      std::memcpy(
          copy.writable->data() + at, page.data() + at, tokens * kv.v_dim * size
      );
    }
  }
  return copy;
}

// A tail is stored up to a rounded width; what lies between is zero, so that
// equal tokens give equal bytes and nothing of other sequences gets out.
void CpuKv::clear_tail(Page& page, std::size_t tokens) const {
  std::size_t width = KvLayout::width_for(tokens);
  for (std::size_t i = 0; i < layout_.layers.size(); ++i) {
    const LayerKv& kv = layout_.layers[i];
    std::size_t size = size_of(kv.type);
    for (std::size_t row = 0; row < std::size_t{kv.kv_heads} * kv.k_dim;
         ++row) {
      std::size_t at = places_[i].k + (row * kPageTokens + tokens) * size;
      std::memset(page.data() + at, 0, (width - tokens) * size);
    }
    for (std::size_t head = 0; head < kv.kv_heads; ++head) {
      std::size_t at = v_place(i, head) + tokens * kv.v_dim * size;
      std::memset(page.data() + at, 0, (width - tokens) * kv.v_dim * size);
    }
  }
}

void CpuKv::restore(std::span<const PagePtr> pages, std::size_t tokens) {
  CHECK(length_ == 0 && pages.size() == pages_for(tokens));
  pages_.clear();
  for (std::size_t i = 0; i < pages.size(); ++i) {
    std::size_t used = std::min(kPageTokens, tokens - i * kPageTokens);
    if (used == kPageTokens) {
      pages_.push_back({pages[i], nullptr});
    } else {
      pages_.push_back(copy_of(*pages[i], used));
    }
  }
  length_ = tokens;
}

PagePtr CpuKv::seal(std::size_t index) {
  CHECK(index * kPageTokens < length_);
  Held& held = pages_[index];
  if (held.writable != nullptr) {
    std::size_t used = std::min(kPageTokens, length_ - index * kPageTokens);
    if (used < kPageTokens) {
      clear_tail(*held.writable, used);
    }
    held.writable = nullptr;
  }
  return held.page;
}

void CpuKv::truncate(std::size_t tokens) {
  CHECK(tokens <= length_);
  length_ = tokens;
  pages_.resize(pages_for(tokens));
}

std::size_t CpuKv::bytes() const {
  return pages_.size() * pool_.page_bytes();
}

void CpuKv::prepare(std::size_t count) {
  std::size_t used = length_ % kPageTokens;
  std::size_t first = length_ / kPageTokens;
  if (used != 0 && pages_[first].writable == nullptr) {
    pages_[first] = copy_of(*pages_[first].page, used);
  }
  while (pages_.size() < pages_for(length_ + count)) {
    pages_.push_back(new_page());
  }
}

}  // namespace afterglow
