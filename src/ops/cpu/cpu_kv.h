#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/kv_layout.h"
#include "base/page.h"
#include "ops/ops.h"

namespace afterglow {

/// A sequence as a table of pages. A frozen page may be shared with anyone;
/// one that will be written is private, copied first if need be.
/// Thread: the generation thread; pages of different tokens may be written at
/// the same time between prepare() and grow().
class CpuKv final : public KvState {
 public:
  CpuKv(const KvLayout& layout, PagePool& pool);

  std::size_t length() const override { return length_; }
  void restore(std::span<const PagePtr> pages, std::size_t tokens) override;
  PagePtr seal(std::size_t index) override;
  void truncate(std::size_t tokens) override;
  std::size_t bytes() const override;

  const KvLayout& layout() const { return layout_; }

  /// Makes room for `count` tokens behind length(): private pages, of which
  /// the used part of the first is kept.
  void prepare(std::size_t count);
  /// Counts the tokens written since prepare().
  void grow(std::size_t count) { length_ += count; }

  /// K [k_dim][256] or V [256][v_dim] of a head in a page.
  const std::byte* k(std::size_t page, std::size_t layer, std::size_t head)
      const {
    return pages_[page].page->data() + k_place(layer, head);
  }
  const std::byte* v(std::size_t page, std::size_t layer, std::size_t head)
      const {
    return pages_[page].page->data() + v_place(layer, head);
  }
  /// The same to write. Requires: the page is private (see prepare()).
  std::byte* k_to_write(std::size_t page, std::size_t layer, std::size_t head) {
    return pages_[page].writable->data() + k_place(layer, head);
  }
  std::byte* v_to_write(std::size_t page, std::size_t layer, std::size_t head) {
    return pages_[page].writable->data() + v_place(layer, head);
  }

 private:
  struct Held {
    PagePtr page;
    Page* writable = nullptr;  // null: frozen
  };
  // Bytes from the page's start to a layer's parts, and of a head in them.
  struct Place {
    std::size_t k, v, k_head, v_head;
  };

  std::size_t k_place(std::size_t layer, std::size_t head) const {
    return places_[layer].k + head * places_[layer].k_head;
  }
  std::size_t v_place(std::size_t layer, std::size_t head) const {
    return places_[layer].v + head * places_[layer].v_head;
  }
  Held new_page();
  Held copy_of(const Page& page, std::size_t tokens);
  void clear_tail(Page& page, std::size_t tokens) const;

  KvLayout layout_;
  PagePool& pool_;
  std::vector<Place> places_;
  std::vector<Held> pages_;
  std::size_t length_ = 0;
};

}  // namespace afterglow
