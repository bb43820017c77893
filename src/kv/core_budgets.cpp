#include <algorithm>

#include "base/check.h"
#include "kv/core.h"

namespace afterglow::kv {
namespace {

bool some_block_durable(const Node* node) {
  while (!node->root && !node->durable) {
    node = node->parent;
  }
  return !node->root;
}

}  // namespace

void Core::tidy() {
  settle();
  while (entries_.idle() > options_.limits.entries && drop_over_count()) {
    settle();
  }
  while (tree_.ledger().kept_pages > limit_pages_ && shed_page()) {
    settle();
  }
}

void Core::settle() {
  std::vector<NodePtr>& unsettled = tree_.unsettled();
  while (!unsettled.empty() || !again_.empty()) {
    if (unsettled.empty()) {
      DiskBlock disk = std::move(again_.back());
      again_.pop_back();
      add_disk(std::move(disk));
      continue;
    }
    NodePtr node = std::move(unsettled.back());
    unsettled.pop_back();
    if (!node->attached || Tree::settled(*node)) {
      continue;
    }
    if (node->page) {
      tree_.change(*node, [&] {
        tree_.garbage().push_back(std::move(node->page));
      });
      ++counts_.evicted.ram_blocks;
    }
    if (!node->durable) {
      forget(*node);
    }
  }
}

void Core::forget(Node& top) {
  NodePtr alive = top.shared_from_this();
  Node* parent = top.parent;
  // Children before parents.
  std::vector<NodePtr> below{alive};
  for (std::size_t i = 0; i < below.size(); ++i) {
    for (Node* child : below[i]->children) {
      below.push_back(child->shared_from_this());
    }
  }
  std::reverse(below.begin(), below.end());
  for (NodePtr& node : below) {
    for (Entry* entry : Entries::ending_in(*node)) {
      std::size_t before = entries_.size();
      entries_.shorten(entry, parent);
      counts_.evicted.lost += before - entries_.size();
    }
  }
  for (NodePtr& node : below) {
    CHECK(!node->kept.any() && !node->ram.any() && !node->pinned.any());
    dirty_.remove(*node);
    if (node->unwanted) {
      take_superseded_by(*node);
    }
    for (const BlockId& id : node->supersedes) {
      if (auto disk = take_written_superseded(id)) {
        again_.push_back(std::move(*disk));
      }
    }
    if (node->durable) {
      orphans_.add({node->block, node->file_bytes, last_now_ns_});
    }
    tree_.detach(*node);
  }
}

bool Core::drop_over_count() {
  Entry* victim = entries_.all().victim([](const Entry& entry) {
    return !entry.pinned && !entry.owner && entry.node->uses == 0;
  });
  if (!victim) {
    return false;
  }
  entries_.drop(victim);
  ++counts_.evicted.over_count;
  return true;
}

bool Core::shed_page() {
  Entry* victim = entries_.in_ram().victim([](const Entry& entry) {
    return !entry.pinned && !entry.owner && entry.ram_end->uses == 0 &&
           entry.ram_end->writing == Writing::kClean;
  });
  if (!victim) {
    return false;
  }
  Node* end = victim->ram_end;
  entries_.set_ram_end(victim, end->parent->root ? nullptr : end->parent);
  return true;
}

std::uint64_t Core::shrink_ram(std::uint64_t bytes) {
  std::size_t before = tree_.ledger().ram_pages;
  auto freed = [&] {
    return (before - tree_.ledger().ram_pages) * options_.page_bytes;
  };
  while (freed() < bytes && shed_page()) {
    settle();
  }
  tidy();
  return freed();
}

std::vector<BlockId> Core::evict_disk(std::uint64_t bytes) {
  std::vector<BlockId> out;
  std::uint64_t freed = 0;
  halve_over_disk();
  settle();
  while (freed < bytes) {
    if (remove_loose(out, freed)) {
      continue;
    }
    Entry* victim = entries_.all().victim([](const Entry& entry) {
      return !entry.pinned && !entry.owner && entry.node->uses == 0 &&
             entry.node->writing == Writing::kClean &&
             some_block_durable(entry.node);
    });
    const DiskBlock* orphan = orphans_.oldest_leaf();
    if (orphan && (!victim || orphan->last_use_ns <= victim->last_use_ns)) {
      freed += orphan->file_bytes;
      out.push_back(orphan->block->id);
      orphans_.take(out.back());
    } else if (victim) {
      std::size_t before = entries_.size();
      entries_.shorten(victim, victim->node->parent);
      counts_.evicted.over_disk += before - entries_.size();
      settle();
    } else {
      break;
    }
  }
  tidy();
  return out;
}

bool Core::remove_loose(std::vector<BlockId>& out, std::uint64_t& freed) {
  for (const auto& [key, node] : tree_.loose()) {
    if (node->uses == 0 && node->writing == Writing::kClean) {
      out.push_back(node->id());
      freed += node->file_bytes;
      tree_.detach(*node);
      return true;
    }
  }
  return false;
}

void Core::halve_over_disk() {
  std::uint64_t limit = options_.limits.disk_bytes;
  std::vector<Entry*> over;
  for (const Entry& entry : entries_.list()) {
    bool maybe =
        largest_file_ > 0 && entry.node->index() + 1 > limit / largest_file_;
    if (maybe && !entry.pinned && !entry.owner && entry.node->uses == 0) {
      over.push_back(&*entry.self);
    }
  }
  for (Entry* entry : over) {
    std::uint64_t bytes = 0;
    for (Node* node = entry->node; !node->root; node = node->parent) {
      bytes += node->file_bytes;
    }
    if (bytes > limit) {
      Node* node = entry->node;
      for (; !node->root && bytes > limit / 2; node = node->parent) {
        bytes -= node->file_bytes;
      }
      entries_.shorten(entry, node);
    }
  }
}

}  // namespace afterglow::kv
