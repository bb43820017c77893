#include "kv/core.h"

#include <algorithm>

#include "base/check.h"

namespace afterglow::kv {
namespace {

std::size_t pages_in(std::uint64_t bytes, std::size_t page_bytes) {
  CHECK(page_bytes > 0);
  return static_cast<std::size_t>(
      std::min<std::uint64_t>(bytes / page_bytes, SIZE_MAX / 2)
  );
}

}  // namespace

Core::Core(Options options)
    : options_(std::move(options)),
      limit_pages_(pages_in(options_.limits.ram_bytes, options_.page_bytes)),
      entries_(tree_, limit_pages_),
      orphans_(kMaxOrphans),
      waiting_(kMaxWaitingEntries) {}

std::int64_t Core::now_ns() {
  // The wall clock may be set back; the order of uses is not.
  last_now_ns_ = std::max(last_now_ns_, options_.clock.unix_ns());
  return last_now_ns_;
}

CacheStats Core::stats() const {
  CacheStats stats = counts_;
  const Ledger& sums = tree_.ledger();
  stats.entries = entries_.size();
  for (std::size_t i = 0; i < 3; ++i) {
    stats.entries_by_type[i] = entries_.all().size(static_cast<EntryType>(i));
  }
  stats.blocks = sums.blocks;
  stats.ram_pages = sums.ram_pages;
  stats.ram_bytes = sums.idle_pages * options_.page_bytes;
  stats.disk_blocks = disk_blocks();
  stats.disk_bytes = disk_bytes();
  stats.dirty_blocks = dirty_.size();
  stats.dirty_bytes = sums.dirty_pages * options_.page_bytes;
  if (auto oldest = dirty_.oldest()) {
    stats.oldest_dirty_seconds =
        std::chrono::duration<double>(options_.clock.steady() - *oldest)
            .count();
  }
  stats.limits = options_.limits;
  return stats;
}

void Core::verify() const {
  Ledger sums;
  std::size_t loose = 0;
  std::size_t dirty = 0;
  for (const auto& [id, node] : tree_.nodes()) {
    CHECK(node->id() == id && node->attached);
    Cover kept;
    Cover ram;
    Cover pinned;
    for (const Node* child : node->children) {
      CHECK(child->parent == node.get() && tree_.find(child->id()) == child);
      kept.children += child->kept.any();
      ram.children += child->ram.any();
      pinned.children += child->pinned.any();
    }
    for (const Entry* entry : node->ends) {
      CHECK(entry->node->parent == node.get() && entry->node->attached);
    }
    if (node->root) {
      CHECK(!node->children.empty(), "an empty root stays");
      continue;
    }
    sums.add(*node);
    CHECK(Tree::settled(*node), "nobody wants this page or block");
    CHECK(!node->ram.any() || node->page, "a kept page is missing");
    CHECK(!node->ram.any() || node->kept.any());
    CHECK(node->children.empty() || node->block->full());
    for (const Entry& entry : entries_.list()) {
      kept.ends += entry.node == node.get();
      ram.ends += entry.ram_end == node.get();
      pinned.ends += entry.node == node.get() && entry.pinned;
    }
    auto same = [](const Cover& a, const Cover& b) {
      return a.ends == b.ends && a.children == b.children;
    };
    CHECK(same(kept, node->kept));
    CHECK(same(ram, node->ram));
    CHECK(same(pinned, node->pinned));
    loose += node->loose_key != 0;
    dirty += node->writing != Writing::kClean;
    CHECK((node->ticket != 0) == (node->writing != Writing::kClean));
    CHECK((node->queue_key != 0) == (node->writing == Writing::kQueued));
  }
  CHECK(sums == tree_.ledger(), "a sum is wrong");
  CHECK(loose == tree_.loose().size());
  CHECK(dirty == dirty_.size());
  std::size_t in_ram = 0;
  for (const Entry& entry : entries_.list()) {
    CHECK(entries_.find(*entry.node, entry.length) == &entry);
    in_ram += entry.ram_end != nullptr;
  }
  CHECK(entries_.all().size() == entries_.size());
  CHECK(entries_.in_ram().size() == in_ram);
}

}  // namespace afterglow::kv
