#include "base/page.h"

namespace afterglow {

PagePool::PagePool(std::size_t page_bytes)
    : shared_(std::make_shared<Shared>()) {
  shared_->page_bytes = page_bytes;
}

std::shared_ptr<Page> PagePool::make() {
  AlignedBuffer buffer;
  {
    std::lock_guard lock(shared_->mutex);
    if (!shared_->spare.empty()) {
      buffer = std::move(shared_->spare.back());
      shared_->spare.pop_back();
    }
  }
  if (buffer.size() == 0) {
    buffer = AlignedBuffer(shared_->page_bytes);
  }
  shared_->live.fetch_add(1);
  auto recycle = [shared = shared_](Page* page) {
    shared->live.fetch_sub(1);
    {
      std::lock_guard lock(shared->mutex);
      if (shared->spare.size() < kSpareBuffers) {
        shared->spare.push_back(std::move(page->buffer_));
      }
    }
    delete page;
  };
  return {new Page(std::move(buffer)), recycle};
}

}  // namespace afterglow
