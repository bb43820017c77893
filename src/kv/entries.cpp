#include "kv/entries.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace afterglow::kv {
namespace {

constexpr auto kAllLevels = std::numeric_limits<std::size_t>::max();

Node* above(Node* node) {
  return node->parent->root ? nullptr : node->parent;
}

std::int64_t expiry(const Entry& entry) {
  constexpr auto kNever = std::numeric_limits<std::int64_t>::max();
  return entry.ttl_ns > kNever - entry.last_use_ns
             ? kNever
             : entry.last_use_ns + entry.ttl_ns;
}

}  // namespace

template <class Edit>
void Entries::reorder(Entry* entry, Edit edit) {
  all_.erase(entry);
  if (entry->ram_end) {
    in_ram_.erase(entry);
  }
  unschedule(entry);
  edit();
  schedule(entry);
  all_.insert(entry);
  if (entry->ram_end) {
    in_ram_.insert(entry);
  }
}

Entry* Entries::find(const Node& node, std::size_t length) const {
  CHECK(length > node.block->start && length <= node.end());
  auto it =
      node.parent->ends.find(tokens_of(&node).first(length - node.block->start)
      );
  return it == node.parent->ends.end() ? nullptr : *it;
}

Entry* Entries::create(Node* node, std::size_t length, EntryType type) {
  Entry* entry = &list_.emplace_back();
  entry->self = std::prev(list_.end());
  entry->node = node;
  entry->length = length;
  entry->type = type;
  entry->use = next_use_++;
  entry->number = next_number_++;
  CHECK(node->parent->ends.insert(entry).second);
  tree_.add_cover(node, &Node::kept);
  all_.insert(entry);
  return entry;
}

Entry* Entries::put(
    Node* node,
    std::size_t length,
    EntryType type,
    std::int64_t time_ns,
    TrailState* owner
) {
  Entry* entry = find(*node, length);
  if (!entry) {
    entry = create(node, length, type);
  } else if (entry->node != node && node->page && !entry->node->page) {
    move(entry, node, length);
  }
  if (entry->type < type) {
    set_type(entry, type);
  }
  touch(entry, std::max(time_ns, entry->last_use_ns));
  if (owner) {
    // Another trail's advancing entry must not carry this one away.
    disown(entry);
    own(entry, owner);
    entry->found = false;
    keep_way(entry, node);
  }
  absorb_prefixes(entry, node, kAllLevels);
  return entry;
}

Entry* Entries::advance(TrailState& trail, std::int64_t time_ns) {
  Node* node = trail.nodes.back().get();
  Entry* mine = trail.assistant;
  Entry* same = find(*node, trail.covered);
  if (same && same != mine) {
    if (mine) {
      drop(mine);
    }
    if (same->node != node && node->page && !same->node->page) {
      move(same, node, trail.covered);
    }
    touch(same, time_ns);
    same->found = false;
    keep_way(same, node);
    return same;
  }
  std::size_t levels = 2;
  if (mine) {
    move(mine, node, trail.covered);
  } else {
    mine = create(node, trail.covered, EntryType::kAssistant);
    own(mine, &trail);
    trail.assistant = mine;
    levels = kAllLevels;
  }
  touch(mine, time_ns);
  keep_way(mine, node);
  absorb_prefixes(mine, node, levels);
  return mine;
}

void Entries::release(TrailState& trail) {
  trail.assistant = nullptr;
  while (!trail.owned.empty()) {
    Entry* entry = trail.owned.back();
    disown(entry);
    keep_half_if_over(entry);
  }
}

void Entries::move(Entry* entry, Node* node, std::size_t length) {
  Node* old = entry->node;
  old->parent->ends.erase(entry);
  tree_.add_cover(node, &Node::kept);
  tree_.remove_cover(old, &Node::kept);
  if (entry->pinned) {
    tree_.add_cover(node, &Node::pinned);
    tree_.remove_cover(old, &Node::pinned);
  }
  if (entry->ram_end && entry->ram_end->block->start >= node->block->start &&
      entry->ram_end != node) {
    set_ram_end(entry, node->page ? node : above(node));
  }
  entry->node = node;
  entry->length = length;
  CHECK(node->parent->ends.insert(entry).second);
}

void Entries::shorten(Entry* entry, Node* node) {
  if (node->root) {
    drop(entry);
    return;
  }
  Entry* same = find(*node, node->end());
  bool dear = entry->pinned || entry->type == EntryType::kSystem;
  if (same) {
    if (same->type < entry->type) {
      set_type(same, entry->type);
    }
    set_pinned(same, same->pinned || entry->pinned);
    same->pin_time_ns = std::max(same->pin_time_ns, entry->pin_time_ns);
    touch(same, std::max(same->last_use_ns, entry->last_use_ns));
    same->hits += entry->hits;
    drop(entry);
    return;
  }
  if (entry->ram_end && entry->ram_end->block->start > node->block->start) {
    set_ram_end(entry, node);
  }
  move(entry, node, node->end());
  if (node->kept.children > 0 && !dear) {
    drop(entry);
  }
}

void Entries::drop(Entry* entry) {
  disown(entry);
  set_pinned(entry, false);
  set_ram_end(entry, nullptr);
  unschedule(entry);
  all_.erase(entry);
  entry->node->parent->ends.erase(entry);
  tree_.remove_cover(entry->node, &Node::kept);
  list_.erase(entry->self);
}

void Entries::touch(Entry* entry, std::int64_t time_ns) {
  reorder(entry, [&] {
    entry->last_use_ns = time_ns;
    entry->use = next_use_++;
  });
}

void Entries::set_type(Entry* entry, EntryType type) {
  reorder(entry, [&] { entry->type = type; });
}

void Entries::set_pinned(Entry* entry, bool pinned) {
  if (entry->pinned != pinned) {
    entry->pinned = pinned;
    pinned ? tree_.add_cover(entry->node, &Node::pinned)
           : tree_.remove_cover(entry->node, &Node::pinned);
  }
}

void Entries::set_ttl(Entry* entry, std::int64_t ttl_ns) {
  unschedule(entry);
  entry->ttl_ns = ttl_ns;
  schedule(entry);
}

void Entries::schedule(Entry* entry) {
  if (entry->ttl_ns > 0) {
    mortal_[{expiry(*entry), entry->number}] = entry;
  }
}

void Entries::unschedule(Entry* entry) {
  if (entry->ttl_ns > 0) {
    mortal_.erase({expiry(*entry), entry->number});
  }
}

std::vector<Entry*> Entries::expired(std::int64_t now_ns) const {
  std::vector<Entry*> due;
  for (const auto& [when, entry] : mortal_) {
    if (when.first > now_ns) {
      break;
    }
    due.push_back(entry);
  }
  return due;
}

void Entries::set_ram_end(Entry* entry, Node* node) {
  Node* old = entry->ram_end;
  if (old == node) {
    return;
  }
  if (node) {
    tree_.add_cover(node, &Node::ram);
  }
  if (old) {
    tree_.remove_cover(old, &Node::ram);
  }
  entry->ram_end = node;
  if (!old) {
    in_ram_.insert(entry);
  } else if (!node) {
    in_ram_.erase(entry);
  }
}

void Entries::extend_ram(Entry* entry, Node* node) {
  if (!node) {
    return;
  }
  bool longer =
      !entry->ram_end || entry->ram_end->block->start < node->block->start;
  if (longer) {
    set_ram_end(entry, node);
    keep_half_if_over(entry);
  }
}

void Entries::keep_way(Entry* entry, Node* node) {
  bool there = entry->node == node && node->page;
  extend_ram(entry, there ? node : above(node));
}

void Entries::keep_half_if_over(Entry* entry) {
  if (!entry->owner && entry->ram_end &&
      entry->ram_end->index() >= limit_pages_) {
    keep_half(entry);
  }
}

void Entries::keep_half(Entry* entry) {
  Node* node = entry->ram_end;
  while (node && node->index() >= limit_pages_ / 2) {
    node = above(node);
  }
  set_ram_end(entry, node);
}

void Entries::absorb_prefixes(Entry* entry, Node* from, std::size_t levels) {
  Tokens tokens = tokens_of(entry);
  for (Node* node = from; !node->root && levels > 0; --levels) {
    if (!node->parent->ends.empty()) {
      for (Entry* other : prefixes_in(node->parent->ends, tokens)) {
        bool dear = other->pinned || other->type == EntryType::kSystem;
        // A running sequence's boundaries are not its prefixes' leftovers.
        bool running = other->owner && (other->owner == entry->owner ||
                                        other->owner->assistant != other);
        if (other != entry && !dear && !running) {
          if (other->last_use_ns > entry->last_use_ns) {
            touch(entry, other->last_use_ns);
          }
          if (Node* kept = other->ram_end) {
            bool shared =
                kept == node || kept->block->start < node->block->start;
            extend_ram(entry, shared ? kept : above(node));
          }
          drop(other);
        }
      }
    }
    node = node->parent;
    tokens = tokens_of(node);
  }
}

std::vector<Entry*> Entries::ending_in(const Node& node) {
  std::vector<Entry*> entries;
  if (node.kept.ends > 0) {
    entries = prefixes_in(node.parent->ends, tokens_of(&node));
    std::erase_if(entries, [&](Entry* e) { return e->node != &node; });
  }
  return entries;
}

void Entries::move_all(Node& from, Node& to) {
  for (Entry* entry : ending_in(from)) {
    if (entry->ram_end == &from) {
      set_ram_end(entry, to.page ? &to : above(&to));
    }
    move(entry, &to, entry->length);
  }
}

Entry* Entries::covering(Node* node) {
  while (node->kept.any()) {
    if (std::vector<Entry*> here = ending_in(*node); !here.empty()) {
      return here.front();
    }
    Node* next =
        node->recent && node->recent->kept.any() ? node->recent : nullptr;
    for (auto it = node->children.begin(); !next; ++it) {
      next = (*it)->kept.any() ? *it : nullptr;
    }
    node = next;
  }
  return nullptr;
}

void Entries::own(Entry* entry, TrailState* owner) {
  entry->owner = owner;
  owner->owned.push_back(entry);
  ++owned_;
}

void Entries::disown(Entry* entry) {
  if (TrailState* owner = entry->owner) {
    std::erase(owner->owned, entry);
    if (owner->assistant == entry) {
      owner->assistant = nullptr;
    }
    entry->owner = nullptr;
    --owned_;
  }
}

}  // namespace afterglow::kv
