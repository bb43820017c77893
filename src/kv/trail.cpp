#include "base/check.h"
#include "kv/cache_impl.h"
#include "kv/prompt_cache.h"

namespace afterglow {

Trail::Trail() = default;

Trail::~Trail() {
  finish();
}

Trail::Trail(Trail&& other) noexcept = default;

Trail& Trail::operator=(Trail&& other) noexcept {
  if (this != &other) {
    finish();
    state_ = std::move(other.state_);
  }
  return *this;
}

void Trail::finish() {
  if (state_) {
    PromptCache::Impl::Lock lock(*state_->cache);
    state_->cache->core.finish(state_->trail);
  }
  state_.reset();
}

std::size_t Trail::length() const {
  return state_ ? state_->trail.length : 0;
}

void Trail::append(std::span<const Token> tokens, PagePtr page) {
  CHECK(state_, "append to a trail that was never started");
  CHECK(page != nullptr);
  kv::TrailState& trail = state_->trail;
  CHECK(trail.length % kPageTokens == 0, "nothing follows a tail");
  // Hashing and copying need no lock.
  BlockPtr block = make_block(trail.last_id, trail.length, tokens);
  PromptCache::Impl::Lock lock(*state_->cache);
  state_->cache->core.append(trail, std::move(block), std::move(page));
}

const BlockId& Trail::last_id() const {
  CHECK(state_, "a trail that was never started has no blocks");
  return state_->trail.last_id;
}

PagePtr Trail::page(std::size_t index) const {
  CHECK(state_ && index < state_->trail.pages.size());
  return state_->trail.pages[index];
}

}  // namespace afterglow
