#include "kv/cache_impl.h"
#include "kv/prompt_cache.h"

namespace afterglow {

Match::~Match() {
  release();
}

Match::Match(Match&& other) noexcept {
  *this = std::move(other);
}

Match& Match::operator=(Match&& other) noexcept {
  if (this != &other) {
    release();
    cache_ = std::exchange(other.cache_, nullptr);
    tokens_ = std::exchange(other.tokens_, 0);
    path_ = std::exchange(other.path_, {});
    nodes_ = std::exchange(other.nodes_, {});
  }
  return *this;
}

void Match::release() {
  if (cache_) {
    PromptCache::Impl::Lock lock(*cache_->impl_);
    cache_->impl_->core.release(nodes_);
  }
  cache_ = nullptr;
}

}  // namespace afterglow
