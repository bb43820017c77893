#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "base/aligned_buffer.h"

namespace afterglow {

/// The KV of up to kPageTokens tokens in all layers, laid out by KvLayout.
/// Written by one sequence while private; frozen (shared as PagePtr) it is
/// never written again. How many tokens are valid is its block's business.
class Page {
 public:
  explicit Page(AlignedBuffer buffer) : buffer_(std::move(buffer)) {}
  std::byte* data() { return buffer_.data(); }
  const std::byte* data() const { return buffer_.data(); }
  std::size_t size() const { return buffer_.size(); }

 private:
  friend class PagePool;
  AlignedBuffer buffer_;
};

/// A frozen page, shared by sequences, histories, the tree and the writer.
using PagePtr = std::shared_ptr<const Page>;

/// Makes pages of one size, counts those alive and keeps a few freed buffers
/// for the next. Thread: safe from any thread; pages may outlive the pool.
class PagePool {
 public:
  static constexpr std::size_t kSpareBuffers = 8;

  explicit PagePool(std::size_t page_bytes);

  /// A private page with unspecified content. Throws std::bad_alloc.
  std::shared_ptr<Page> make();

  std::size_t page_bytes() const { return shared_->page_bytes; }
  /// Pages handed out and still referenced by anyone.
  std::size_t live_pages() const { return shared_->live.load(); }

 private:
  struct Shared {
    std::size_t page_bytes;
    std::atomic<std::size_t> live{0};
    std::mutex mutex;
    std::vector<AlignedBuffer> spare;  // guarded by mutex
  };
  std::shared_ptr<Shared> shared_;
};

}  // namespace afterglow
