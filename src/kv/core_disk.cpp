#include <algorithm>

#include "kv/core.h"

namespace afterglow::kv {

std::vector<NodePtr> Core::take_dirty(std::chrono::milliseconds tail_delay) {
  std::vector<NodePtr> due = dirty_.take(options_.clock.steady(), tail_delay);
  for (NodePtr& node : due) {
    tree_.change(*node, [&] { node->writing = Writing::kTaken; });
  }
  return due;
}

void Core::mark_clean(Node& node) {
  dirty_.remove(node);
  tree_.change(node, [&] { node.writing = Writing::kClean; });
}

bool Core::set_durable(const BlockId& id, std::uint64_t file_bytes) {
  bool known = true;
  if (Node* node = tree_.find(id)) {
    mark_clean(*node);
    tree_.change(*node, [&] {
      node->durable = true;
      node->file_bytes = file_bytes;
    });
    became_durable(*node);
    if (node->unwanted) {
      sweep(*node);
    }
  } else if (auto it = superseded_.find(id); it != superseded_.end()) {
    Superseded tail = std::move(it->second);
    superseded_.erase(it);
    tail.disk.file_bytes = file_bytes;
    if (tail.by->attached || tail.by->durable) {
      add_superseded(std::move(tail.disk), *tail.by, true);
    } else {
      again_.push_back(std::move(tail.disk));
    }
  } else {
    known = false;
  }
  tidy();
  return known;
}

void Core::set_write_failed(const BlockId& id) {
  if (Node* node = tree_.find(id)) {
    node->retry_at = options_.clock.steady() + kRetryAfter;
    mark_clean(*node);
    tidy();
  } else if (auto it = superseded_.find(id);
             it != superseded_.end() && !it->second.written) {
    superseded_.erase(it);
  }
}

bool Core::requeue(const BlockId& id) {
  Node* node = tree_.find(id);
  if (!node || !node->page || !options_.with_disk) {
    return false;
  }
  queue(*node);
  return true;
}

void Core::queue(Node& node) {
  dirty_.push(node, options_.clock.steady());
  tree_.change(node, [&] {
    node.durable = false;
    node.file_bytes = 0;
    node.writing = Writing::kQueued;
  });
}

void Core::became_durable(Node& node) {
  largest_file_ = std::max(largest_file_, node.file_bytes);
  for (const BlockId& id : node.supersedes) {
    if (take_written_superseded(id)) {
      gone_.add(id);
    }
  }
  node.supersedes.clear();
}

std::optional<DiskBlock> Core::take_written_superseded(const BlockId& id) {
  auto it = superseded_.find(id);
  if (it == superseded_.end() || !it->second.written) {
    return std::nullopt;
  }
  DiskBlock disk = std::move(it->second.disk);
  superseded_bytes_ -= disk.file_bytes;
  --superseded_written_;
  superseded_.erase(it);
  return disk;
}

void Core::add_superseded(DiskBlock disk, Node& by, bool written) {
  BlockId id = disk.block->id;
  if (written && by.durable) {
    gone_.add(id);
    return;
  }
  if (written) {
    superseded_bytes_ += disk.file_bytes;
    ++superseded_written_;
  }
  by.supersedes.push_back(id);
  superseded_.insert_or_assign(
      id, Superseded{std::move(disk), by.shared_from_this(), written}
  );
}

void Core::supersede_tails(Node& node) {
  for (Node* tail : prefixes_in(node.parent->children, tokens_of(&node))) {
    if (tail != &node) {
      supersede(*tail, node);
    }
  }
}

void Core::supersede(Node& tail, Node& by) {
  NodePtr alive = tail.shared_from_this();
  entries_.move_all(tail, by);
  for (const BlockId& id : tail.supersedes) {
    if (auto it = superseded_.find(id); it != superseded_.end()) {
      it->second.by = by.shared_from_this();
      by.supersedes.push_back(id);
    }
  }
  tail.supersedes.clear();
  bool writing = tail.writing == Writing::kTaken;
  if (tail.writing != Writing::kClean) {
    dirty_.inherit(tail, by);
    mark_clean(tail);
  }
  if (tail.durable || writing) {
    add_superseded(
        {tail.block, tail.file_bytes, last_now_ns_}, by, tail.durable
    );
  }
  tree_.detach(tail);
  if (by.durable) {
    became_durable(by);
  }
}

void Core::welcome(Node& node) {
  supersede_tails(node);
  for (const EntryRecord& record : waiting_.take(node.id())) {
    put_record(node, record);
  }
  for (DiskBlock& child : orphans_.take_children(node.id())) {
    again_.push_back(std::move(child));
  }
}

void Core::add_disk_block(DiskBlock disk) {
  add_disk(std::move(disk));
  tidy();
}

void Core::add_disk(DiskBlock disk) {
  const Block& block = *disk.block;
  if (block.tokens.empty() || block.tokens.size() > kPageTokens ||
      block.start % kPageTokens != 0) {
    return;
  }
  disk.last_use_ns = std::min(disk.last_use_ns, now_ns());
  largest_file_ = std::max(largest_file_, disk.file_bytes);
  if (Node* node = tree_.find(block.id)) {
    if (!node->durable) {
      if (node->writing == Writing::kQueued) {
        mark_clean(*node);
      }
      tree_.change(*node, [&] {
        node->durable = true;
        node->file_bytes = disk.file_bytes;
      });
      became_durable(*node);
    }
  } else if (!superseded_.contains(block.id) && !insert_disk(disk)) {
    orphans_.add(std::move(disk));
  }
}

bool Core::insert_disk(const DiskBlock& disk) {
  const BlockPtr& block = disk.block;
  Node* parent =
      block->start == 0 ? tree_.root(block->parent) : tree_.find(block->parent);
  if (!parent) {
    return false;
  }
  bool fits = parent->root
                  ? block->start == 0
                  : parent->block->full() && parent->end() == block->start;
  if (!fits || parent->children.contains(Tokens(block->tokens))) {
    tree_.prune_root(parent);
    return true;  // not a block of this tree, whoever wrote it
  }
  if (Node* longer = Tree::extension(*parent, block->tokens)) {
    add_superseded(disk, *longer, true);
    return true;
  }
  Node* node = tree_.create(block, parent);
  gone_.keep(block->id);
  tree_.change(*node, [&] {
    node->durable = true;
    node->file_bytes = disk.file_bytes;
  });
  welcome(*node);
  if (!node->kept.any() && !entries_.find(*node, node->end())) {
    Entry* entry = entries_.put(
        node, node->end(), EntryType::kAssistant, disk.last_use_ns, nullptr
    );
    entry->found = true;
    entries_.set_ttl(entry, options_.limits.ttl_ns);
  }
  return true;
}

PagePtr Core::attach_page(const BlockId& id, PagePtr page) {
  Node* node = tree_.find(id);
  if (!node || node->root) {
    return page;
  }
  if (!node->page) {
    tree_.change(*node, [&] { node->page = page; });
    Node* parent = node->parent;
    if (parent->root || parent->ram.any()) {
      if (Entry* entry = Entries::covering(node)) {
        entries_.extend_ram(entry, node);
      }
    }
  }
  page = node->page;
  tidy();
  return page;
}

void Core::forget_disk(const BlockId& id) {
  orphans_.take(id);
  take_written_superseded(id);
  if (Node* node = tree_.find(id); node && node->durable) {
    tree_.change(*node, [&] {
      node->durable = false;
      node->file_bytes = 0;
    });
  }
  tidy();
}

std::vector<BlockId> Core::durable_blocks() const {
  std::vector<BlockId> ids;
  for (const auto& [id, node] : tree_.nodes()) {
    if (node->durable) {
      ids.push_back(id);
    }
  }
  for (const auto& [id, tail] : superseded_) {
    if (tail.written) {
      ids.push_back(id);
    }
  }
  orphans_.list(ids);
  return ids;
}

std::vector<BlockId> Core::dirty_blocks(const Root& root) const {
  std::vector<BlockId> ids;
  if (dirty_.size() == 0) {
    return ids;
  }
  for (const auto& [id, node] : tree_.nodes()) {
    if (node->writing != Writing::kClean &&
        (!root || Tree::root_of(*node).id() == *root)) {
      ids.push_back(id);
    }
  }
  return ids;
}

std::uint64_t Core::disk_blocks() const {
  return tree_.ledger().disk_blocks + orphans_.size() + superseded_written_;
}

std::uint64_t Core::disk_bytes() const {
  return tree_.ledger().disk_bytes + orphans_.bytes() + superseded_bytes_;
}

}  // namespace afterglow::kv
