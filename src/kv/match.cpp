#include "kv/cache_impl.h"
#include "kv/prompt_cache.h"

namespace afterglow {

Match::~Match() {
  *this = Match();
}

Match::Match(Match&& other) noexcept {
  *this = std::move(other);
}

Match& Match::operator=(Match&& other) noexcept {
  PromptCache* old_cache = std::exchange(cache_, other.cache_);
  auto old_path = std::exchange(path_, std::move(other.path_));
  auto old_nodes = std::exchange(nodes_, std::move(other.nodes_));
  tokens_ = std::exchange(other.tokens_, 0);
  other.cache_ = nullptr;
  other.path_.clear();
  other.nodes_.clear();
  if (old_cache) {
    PromptCache::Impl::Lock lock(*old_cache->impl_);
    old_cache->impl_->core.release(old_nodes);
  }
  return *this;
}

}  // namespace afterglow
