#include "kv/prompt_cache.h"

#include <algorithm>

#include "base/check.h"
#include "kv/cache_impl.h"
#include "kv/entry_list.h"

namespace afterglow {
namespace {

// How many entries are copied while the mutex is held once.
constexpr int kEntriesAtOnce = 64;

/// Copies of all entries (below root), oldest first within their type. The
/// mutex is free between slices.
template <class Impl, class Copy>
auto copy_entries(Impl& impl, const std::optional<BlockId>& root, Copy copy) {
  using Copied = decltype(copy(std::declval<const kv::Entry&>()));
  std::vector<std::pair<std::uint64_t, Copied>> copies;  // with the number
  for (EntryType type :
       {EntryType::kAssistant, EntryType::kUser, EntryType::kSystem}) {
    std::int64_t time = std::numeric_limits<std::int64_t>::min();
    std::uint64_t use = 0;
    for (bool more = true; more;) {
      typename Impl::Lock lock(impl);
      const kv::EntryOrder& order = impl.core.entries().all();
      for (int i = 0; i < kEntriesAtOnce && more; ++i) {
        const kv::Entry* entry = order.after(type, time, use);
        more = entry != nullptr;
        if (more) {
          time = entry->last_use_ns;
          use = entry->use;
          if (!root || kv::Tree::root_of(*entry->node).id() == *root) {
            copies.emplace_back(entry->number, copy(*entry));
          }
        }
      }
    }
  }
  // One used or promoted between two slices was met twice: the last counts.
  std::unordered_map<std::uint64_t, std::size_t> last;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    last[copies[i].first] = i;
  }
  std::vector<Copied> once;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    if (last[copies[i].first] == i) {
      once.push_back(std::move(copies[i].second));
    }
  }
  return once;
}

EntryBlocks with_blocks(const kv::Entry& entry) {
  EntryBlocks copy;
  ListedEntry& listed = copy.listed;
  listed.record = kv::Core::record(entry);
  copy.blocks.resize(listed.record.path.size());
  const kv::Node* node = entry.node;
  for (std::size_t i = copy.blocks.size(); i-- > 0; node = node->parent) {
    copy.blocks[i] = node->block;
    listed.ram_blocks += node->page != nullptr;
    listed.disk_blocks += node->durable;
    if (node->durable) {
      listed.bytes += node->file_bytes;
    } else if (node->page) {
      listed.bytes += node->page->size();
    }
  }
  return copy;
}

}  // namespace

const char* to_string(EntryType type) {
  switch (type) {
    case EntryType::kAssistant:
      return "assistant";
    case EntryType::kUser:
      return "user";
    case EntryType::kSystem:
      return "system";
  }
  CHECK(false, "no such entry type");
  return "";
}

CacheClock CacheClock::system() {
  return {
      [] {
        auto now = std::chrono::system_clock::now().time_since_epoch();
        return std::int64_t{
            std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()};
      },
      [] { return std::chrono::steady_clock::now(); }};
}

PromptCache::PromptCache(
    std::size_t page_bytes, CacheLimits limits, bool with_disk, CacheClock clock
)
    : impl_(std::make_unique<Impl>(kv::Core::Options{
          page_bytes, limits, with_disk, std::move(clock)})) {}

PromptCache::~PromptCache() = default;

Match PromptCache::lookup(
    const BlockId& root,
    std::span<const Token> prompt,
    const std::optional<BlockId>& other
) {
  Match match;
  Impl::Lock lock(*impl_);
  kv::Core::Found found = impl_->core.lookup(root, other, prompt);
  match.cache_ = this;
  match.tokens_ = found.tokens;
  match.nodes_ = std::move(found.nodes);
  match.path_.reserve(match.nodes_.size());
  for (const kv::NodePtr& node : match.nodes_) {
    match.path_.push_back({node->block, node->page});
  }
  return match;
}

Trail PromptCache::start(
    const BlockId& root,
    std::span<const PathBlock> prefix,
    std::vector<Boundary> boundaries
) {
  Trail trail;
  trail.state_ = std::make_unique<Trail::State>();
  trail.state_->cache = impl_.get();
  trail.state_->trail.root = root;
  Impl::Lock lock(*impl_);
  impl_->core.start(trail.state_->trail, prefix, std::move(boundaries));
  return trail;
}

std::vector<PromptCache::Dirty> PromptCache::take_dirty(
    std::chrono::steady_clock::time_point deadline,
    std::chrono::milliseconds tail_delay
) {
  std::unique_lock lock(impl_->mutex);
  const CacheClock& clock = impl_->core.clock();
  for (;;) {
    std::vector<Dirty> dirty;
    for (const kv::NodePtr& node : impl_->core.take_dirty(tail_delay)) {
      dirty.push_back({node->block, node->page, node->sealed_at});
    }
    auto now = clock.steady();
    if (!dirty.empty() || impl_->woken || now >= deadline) {
      impl_->woken = false;
      return dirty;
    }
    auto until = deadline;
    if (auto due = impl_->core.dirty().next_due(tail_delay)) {
      until = std::min(until, *due);
    }
    // Bounded, since a deadline may lie beyond what the clock can add up to.
    auto wait = std::min<std::chrono::steady_clock::duration>(
        until - now, std::chrono::hours(1)
    );
    impl_->sealed.wait_for(lock, wait);
  }
}

void PromptCache::wake() {
  {
    Impl::Lock lock(*impl_);
    impl_->woken = true;
  }
  impl_->sealed.notify_all();
}

std::uint64_t PromptCache::dirty_ticket() const {
  Impl::Lock lock(*impl_);
  return impl_->core.dirty().last_ticket();
}

bool PromptCache::wait_clean(
    std::uint64_t ticket, std::chrono::steady_clock::time_point deadline
) {
  std::unique_lock lock(impl_->mutex);
  return impl_->cleaned.wait_until(lock, deadline, [&] {
    return impl_->core.dirty().clean(ticket);
  });
}

std::size_t PromptCache::dirty_count() const {
  Impl::Lock lock(*impl_);
  return impl_->core.dirty().size();
}

bool PromptCache::set_durable(const BlockId& id, std::uint64_t file_bytes) {
  Impl::Lock lock(*impl_);
  return impl_->core.set_durable(id, file_bytes);
}

void PromptCache::set_write_failed(const BlockId& id) {
  Impl::Lock lock(*impl_);
  impl_->core.set_write_failed(id);
}

std::vector<BlockId> PromptCache::take_used() {
  Impl::Lock lock(*impl_);
  return impl_->core.take_used();
}

void PromptCache::renew(const BlockId& id) {
  Impl::Lock lock(*impl_);
  impl_->core.renew(id);
}

bool PromptCache::requeue(const BlockId& id) {
  Impl::Lock lock(*impl_);
  return impl_->core.requeue(id);
}

std::vector<BlockId> PromptCache::take_superseded() {
  Impl::Lock lock(*impl_);
  return impl_->core.take_superseded();
}

void PromptCache::add_disk_block(
    const BlockPtr& block, std::uint64_t file_bytes, std::int64_t last_use_ns
) {
  if (block_id(block->parent, block->start, block->tokens) != block->id) {
    return;
  }
  Impl::Lock lock(*impl_);
  impl_->core.add_disk_block({block, file_bytes, last_use_ns});
}

PagePtr PromptCache::attach_page(const BlockId& id, PagePtr page) {
  Impl::Lock lock(*impl_);
  return impl_->core.attach_page(id, std::move(page));
}

void PromptCache::forget_disk(const BlockId& id) {
  Impl::Lock lock(*impl_);
  impl_->core.forget_disk(id);
}

bool PromptCache::is_durable(const BlockId& id) const {
  Impl::Lock lock(*impl_);
  const kv::Node* node = impl_->core.tree().find(id);
  return node && node->durable;
}

std::vector<BlockId> PromptCache::durable_blocks() const {
  Impl::Lock lock(*impl_);
  return impl_->core.durable_blocks();
}

std::vector<BlockId> PromptCache::evict_disk(std::uint64_t bytes) {
  Impl::Lock lock(*impl_);
  return impl_->core.evict_disk(bytes);
}

void PromptCache::merge_entries(std::span<const EntryRecord> records) {
  for (const EntryRecord& record : records) {
    Impl::Lock lock(*impl_);
    impl_->core.merge(record);
  }
}

std::vector<EntryRecord> PromptCache::entries(const std::optional<BlockId>& root
) const {
  return copy_entries(*impl_, root, kv::Core::record);
}

std::vector<ListedEntry> PromptCache::list_entries(
    const std::optional<BlockId>& root
) const {
  return place_in_order(copy_entries(*impl_, root, with_blocks));
}

CacheStats PromptCache::stats() const {
  Impl::Lock lock(*impl_);
  return impl_->core.stats();
}

bool PromptCache::set_pinned(
    const BlockId& last_block,
    std::size_t length,
    bool pinned,
    const std::optional<BlockId>& root
) {
  Impl::Lock lock(*impl_);
  return impl_->core.set_pinned(last_block, length, pinned, root);
}

bool PromptCache::remove(
    const BlockId& last_block,
    std::size_t length,
    const std::optional<BlockId>& root
) {
  Impl::Lock lock(*impl_);
  return impl_->core.remove(last_block, length, root);
}

std::vector<BlockId> PromptCache::clear(const std::optional<BlockId>& root) {
  Impl::Lock lock(*impl_);
  return impl_->core.clear(root);
}

std::size_t PromptCache::expire() {
  Impl::Lock lock(*impl_);
  return impl_->core.expire();
}

std::vector<BlockId> PromptCache::dirty_blocks(
    const std::optional<BlockId>& root
) const {
  Impl::Lock lock(*impl_);
  return impl_->core.dirty_blocks(root);
}

std::uint64_t PromptCache::shrink_ram(std::uint64_t bytes) {
  Impl::Lock lock(*impl_);
  return impl_->core.shrink_ram(bytes);
}

void PromptCache::verify() const {
  Impl::Lock lock(*impl_);
  impl_->core.verify();
}

}  // namespace afterglow
