#include <algorithm>

#include "kv/core.h"

namespace afterglow::kv {
namespace {

bool in_use(const Entry& entry) {
  return entry.owner || entry.node->uses > 0;
}

bool removable(const Node& node) {
  return !node.root && node.durable && node.uses == 0 && !node.kept.any() &&
         node.children.empty() && node.writing == Writing::kClean;
}

}  // namespace

void Core::doom(Node* node, std::vector<NodePtr>& doomed) {
  for (; !node->root && !node->kept.any(); node = node->parent) {
    node->unwanted = true;
    doomed.push_back(node->shared_from_this());
  }
}

void Core::sweep(Node& node) {
  if (!node.attached || !node.unwanted) {
    return;
  }
  take_superseded_by(node);
  if (removable(node)) {
    gone_.add(node.id());
    NodePtr parent = node.parent->shared_from_this();
    tree_.detach(node);  // and with the last one its root
    if (!parent->root) {
      sweep(*parent);
    }
  }
}

void Core::take_superseded_by(Node& node) {
  for (const BlockId& id : node.supersedes) {
    if (take_written_superseded(id)) {
      gone_.add(id);
    } else {
      superseded_.erase(id);  // one that is being written: nobody's any more
    }
  }
  node.supersedes.clear();
}

void Core::take_out(const std::vector<Entry*>& entries) {
  std::vector<NodePtr> doomed;
  for (Entry* entry : entries) {
    Node* node = entry->node;
    entries_.drop(entry);
    doom(node, doomed);
  }
  sweep_all(doomed);
}

void Core::sweep_all(const std::vector<NodePtr>& doomed) {
  for (const NodePtr& node : doomed) {
    if (node->attached && node->unwanted && node->uses == 0 &&
        node->writing == Writing::kQueued) {
      mark_clean(*node);  // not worth the writing any more
    }
  }
  settle();
  for (const NodePtr& node : doomed) {
    sweep(*node);
  }
  settle();
}

void Core::drop_expired() {
  std::vector<Entry*> due = entries_.expired(now_ns());
  std::erase_if(due, [](const Entry* entry) {
    return entry->pinned || in_use(*entry);
  });
  take_out(due);
  counts_.evicted.expired += due.size();
}

std::size_t Core::expire() {
  std::uint64_t before = counts_.evicted.expired;
  drop_expired();
  tidy();
  return counts_.evicted.expired - before;
}

bool Core::remove(
    const BlockId& last_block, std::size_t length, const Root& root
) {
  Node* node = node_at(last_block, length, root);
  Entry* entry = node ? entries_.find(*node, length) : nullptr;
  if (!entry || in_use(*entry)) {
    return false;
  }
  take_out({entry});
  ++counts_.evicted.removed;
  tidy();
  return true;
}

std::vector<BlockId> Core::clear(const Root& root) {
  auto below = [&](const Node& node) {
    return !root || Tree::root_of(node).id() == *root;
  };
  std::vector<Entry*> entries;
  for (const Entry& entry : entries_.list()) {
    if (!entry.owner && below(*entry.node)) {
      entries.push_back(&*entry.self);
    }
  }
  take_out(entries);
  counts_.evicted.removed += entries.size();
  // What had lost its entries before.
  std::vector<NodePtr> doomed;
  for (const auto& [id, node] : tree_.nodes()) {
    if (!node->root && node->children.empty() && below(*node)) {
      doom(node.get(), doomed);
    }
  }
  sweep_all(doomed);
  if (!root) {
    std::vector<BlockId> orphans;
    orphans_.list(orphans);
    for (const BlockId& id : orphans) {
      orphans_.take(id);
      gone_.add(id);
    }
    waiting_.clear();
  }
  tidy();
  return gone_.take();
}

}  // namespace afterglow::kv
