#include <algorithm>

#include "base/check.h"
#include "kv/core.h"

namespace afterglow::kv {

void Core::use(Node& node) {
  tree_.change(node, [&] { ++node.uses; });
}

Core::Found Core::walk(const BlockId& root, Tokens prompt) {
  Found found;
  Node* node = tree_.find(root);
  if (!node || !node->root) {
    return found;
  }
  while (found.tokens < prompt.size()) {
    Tokens rest = prompt.subspan(found.tokens);
    Tokens key = rest.first(std::min(rest.size(), kPageTokens));
    Tree::Agreement next{Tree::full_child(*node, key), key.size()};
    if (!next.node) {
      next = Tree::best_child(*node, key);
    }
    if (!next.node) {
      break;
    }
    found.nodes.push_back(next.node->shared_from_this());
    found.tokens += next.tokens;
    if (next.tokens < kPageTokens) {
      break;
    }
    node = next.node;
  }
  return found;
}

Core::Found Core::lookup(
    const BlockId& root, const std::optional<BlockId>& other, Tokens prompt
) {
  ++counts_.lookups;
  drop_expired();
  Found found = walk(root, prompt);
  if (other) {
    Found beside = walk(*other, prompt);
    if (beside.tokens > found.tokens) {
      found = std::move(beside);
    }
  }
  for (NodePtr& used : found.nodes) {
    use(*used);
  }
  if (!found.nodes.empty() &&
      found.tokens >= options_.limits.min_match_tokens) {
    ++counts_.hits;
    counts_.hit_tokens += found.tokens;
    touch_way(found);
  }
  return found;
}

void Core::touch_way(const Found& found) {
  std::int64_t now = now_ns();
  bool covered = false;
  Node* resident = nullptr;  // the last node down to which pages are in RAM
  bool unbroken = true;
  auto touch = [&](Entry* entry, Node* node) {
    entries_.touch(entry, now);
    entries_.set_ttl(entry, options_.limits.ttl_ns);
    ++entry->hits;
    entry->found = false;
    bool beside = entry->node->parent == node->parent && entry->node != node;
    Node* keep = resident;
    if (beside && keep == node) {
      keep = node->parent->root ? nullptr : node->parent;
    }
    entries_.extend_ram(entry, keep);
  };
  for (std::size_t i = 0; i < found.nodes.size(); ++i) {
    Node* node = found.nodes[i].get();
    node->parent->recent = node;
    unbroken = unbroken && node->page;
    resident = unbroken ? node : resident;
    std::size_t end = std::min(node->end(), found.tokens);
    Tokens here = tokens_of(node).first(end - node->block->start);
    std::vector<Entry*> ending = prefixes_in(node->parent->ends, here);
    std::reverse(ending.begin(), ending.end());
    for (Entry* entry : ending) {
      touch(entry, node);
      covered |= i + 1 == found.nodes.size() && entry->node == node;
    }
  }
  Node* last = found.nodes.back().get();
  if (!covered) {
    if (Entry* entry = Entries::covering(last)) {
      touch(entry, last);
    }
  }
}

void Core::release(std::span<const NodePtr> nodes) {
  std::vector<NodePtr> doomed;
  // From the end, so that what is let go is let go from the end.
  for (std::size_t i = nodes.size(); i-- > 0;) {
    Node& node = *nodes[i];
    CHECK(node.uses > 0);
    if (node.attached) {
      tree_.change(node, [&] { --node.uses; });
      if (node.unwanted) {
        doomed.push_back(nodes[i]);
      }
    } else {
      --node.uses;
    }
  }
  if (!doomed.empty()) {
    sweep_all(doomed);
  }
  tidy();
}

void Core::start(
    TrailState& trail,
    std::span<const PathBlock> prefix,
    std::vector<Boundary> boundaries
) {
  trail.last_id = trail.root;
  trail.boundaries = std::move(boundaries);
  std::erase_if(trail.boundaries, [](const Boundary& boundary) {
    return boundary.length == 0;
  });
  std::stable_sort(
      trail.boundaries.begin(),
      trail.boundaries.end(),
      [](auto& a, auto& b) { return a.length > b.length; }
  );
  for (const PathBlock& known : prefix) {
    CHECK(known.block->full() && known.page, "a prefix has pages");
    CHECK(known.block->parent == trail.last_id, "a prefix is a path");
    add_block(trail, known.block, known.page);
  }
  open_boundaries(trail);
  tidy();
}

void Core::append(TrailState& trail, BlockPtr block, PagePtr page) {
  add_block(trail, block, page);
  if (!trail.dropped) {
    open_boundaries(trail);
    Entry* entry = entries_.advance(trail, now_ns());
    entries_.set_ttl(entry, options_.limits.ttl_ns);
  }
  tidy();
}

void Core::add_block(
    TrailState& trail, const BlockPtr& block, const PagePtr& page
) {
  trail.pages.push_back(page);
  trail.length += block->tokens.size();
  if (block->full()) {
    trail.last_id = block->id;
  }
  if (!trail.dropped) {
    Node* parent =
        trail.nodes.empty() ? tree_.root(trail.root) : trail.nodes.back().get();
    Node* node = place(block, page, parent);
    if (!node) {
      trail.dropped = true;
      tree_.prune_root(parent);
    } else {
      use(*node);
      trail.nodes.push_back(node->shared_from_this());
      trail.covered = trail.length;
      parent->recent = node;
      if (node->page) {
        trail.pages.back() = node->page;
      }
    }
  }
  if (trail.dropped) {
    ++counts_.dropped_blocks;
  }
}

Node* Core::place(const BlockPtr& block, const PagePtr& page, Node* parent) {
  if (Node* known = tree_.find(block->id)) {
    if (!known->page) {
      tree_.change(*known, [&] { known->page = page; });
    }
    want_on_disk(*known, false);
    return known;
  }
  if (!block->full()) {
    if (Node* longer = Tree::extension(*parent, block->tokens)) {
      want_on_disk(*longer, false);
      return longer;
    }
  }
  std::optional<DiskBlock> orphan = orphans_.take(block->id);
  if (!orphan && !has_room()) {
    return nullptr;
  }
  Node* node = tree_.create(block, parent);
  gone_.keep(block->id);
  if (!orphan && options_.with_disk) {
    dirty_.push(*node, options_.clock.steady());
  }
  tree_.change(*node, [&] {
    node->page = page;
    if (orphan) {
      node->durable = true;
      node->file_bytes = orphan->file_bytes;
    } else if (options_.with_disk) {
      node->writing = Writing::kQueued;
    }
  });
  welcome(*node);
  if (orphan) {
    want_on_disk(*node, false);
  }
  return node;
}

bool Core::has_room() const {
  std::size_t limit = limit_pages_;
  if (options_.with_disk) {
    limit = std::max(limit, kWriteBehindPages);
  }
  return tree_.ledger().fixed_pages < limit;
}

void Core::open_boundaries(TrailState& trail) {
  while (!trail.boundaries.empty() &&
         trail.boundaries.back().length <= trail.covered) {
    Boundary boundary = trail.boundaries.back();
    trail.boundaries.pop_back();
    Node* node = trail.nodes[(boundary.length - 1) / kPageTokens].get();
    Entry* entry =
        entries_.put(node, boundary.length, boundary.type, now_ns(), &trail);
    entries_.set_ttl(entry, options_.limits.ttl_ns);
  }
}

void Core::finish(TrailState& trail) {
  if (trail.dropped && trail.assistant && trail.pages.size() > limit_pages_) {
    entries_.keep_half(trail.assistant);
  }
  entries_.release(trail);
  // Its files may have gone while it ran.
  for (const NodePtr& node : trail.nodes) {
    if (node->attached) {
      want_on_disk(*node, false);
    }
  }
  release(trail.nodes);
  trail.nodes.clear();
}

}  // namespace afterglow::kv
