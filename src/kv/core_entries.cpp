#include <algorithm>

#include "kv/core.h"

namespace afterglow::kv {

void Core::merge(const EntryRecord& record) {
  if (record.path.empty()) {
    return;
  }
  Node* node = tree_.find(record.path.back());
  if (node && !node->root) {
    put_record(*node, record);
    tidy();
  } else {
    waiting_.add(record);
  }
}

void Core::put_record(Node& node, const EntryRecord& record) {
  if (record.length <= node.block->start || record.length > node.end()) {
    return;  // not a length of this path, whoever wrote it
  }
  std::int64_t time = std::min(record.last_use_ns, now_ns());
  Entry* known = entries_.find(node, record.length);
  bool newer = !known || known->found || known->last_use_ns <= time;
  Entry* entry = entries_.put(&node, record.length, record.type, time, nullptr);
  entry->found = false;
  entry->hits = std::max(entry->hits, record.hits);
  if (newer) {
    entries_.set_ttl(entry, record.ttl_ns);
  }
  bool decided_alike = record.pin_time_ns == entry->pin_time_ns;
  if (decided_alike ? newer : record.pin_time_ns > entry->pin_time_ns) {
    entry->pin_time_ns = record.pin_time_ns;
    pin(*entry, record.pinned);
  }
  // An entry made for want of this one has done its work.
  for (Entry* other : Entries::ending_in(*entry->node)) {
    if (other != entry && other->found) {
      entries_.drop(other);
    }
  }
}

EntryRecord Core::record(const Entry& entry) {
  EntryRecord record;
  record.path.resize(entry.node->index() + 1);
  const Node* node = entry.node;
  for (std::size_t i = record.path.size(); i-- > 0; node = node->parent) {
    record.path[i] = node->id();
  }
  record.root = node->id();
  record.length = entry.length;
  record.type = entry.type;
  record.last_use_ns = entry.last_use_ns;
  record.hits = entry.hits;
  record.pinned = entry.pinned;
  record.pin_time_ns = entry.pin_time_ns;
  record.ttl_ns = entry.ttl_ns;
  return record;
}

void Core::pin(Entry& entry, bool pinned) {
  entries_.set_pinned(&entry, pinned);
  if (!pinned) {
    return;
  }
  // The pages it runs through may so far be kept by others only.
  Node* resident = entry.node;
  for (Node* node = entry.node; !node->root; node = node->parent) {
    if (!node->page) {
      resident = node->parent;
    }
  }
  entries_.extend_ram(&entry, resident->root ? nullptr : resident);
}

Node* Core::node_at(
    const BlockId& last_block, std::size_t length, const Root& root
) const {
  Node* node = tree_.find(last_block);
  bool fits = node && !node->root && length > node->block->start &&
              length <= node->end() &&
              (!root || Tree::root_of(*node).id() == *root);
  return fits ? node : nullptr;
}

bool Core::set_pinned(
    const BlockId& last_block, std::size_t length, bool pinned, const Root& root
) {
  Node* node = node_at(last_block, length, root);
  if (!node) {
    return false;
  }
  Entry* entry = entries_.find(*node, length);
  if (!entry && pinned) {
    entry =
        entries_.put(node, length, EntryType::kAssistant, now_ns(), nullptr);
    entries_.set_ttl(entry, options_.limits.ttl_ns);
  }
  if (!entry) {
    return false;
  }
  entry->pin_time_ns = std::max(entry->pin_time_ns, now_ns());
  pin(*entry, pinned);
  for (Node* at = entry->node; pinned && !at->root; at = at->parent) {
    want_on_disk(*at, true);
  }
  entries_.touch(entry, now_ns());
  tidy();
  return true;
}

}  // namespace afterglow::kv
