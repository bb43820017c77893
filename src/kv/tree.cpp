#include "kv/tree.h"

#include "base/check.h"

namespace afterglow::kv {
namespace {

// Siblings that tie are looked through for one in RAM, but not for ever.
constexpr int kTieScan = 8;

}  // namespace

Node* Tree::find(const BlockId& id) const {
  auto it = nodes_.find(id);
  return it == nodes_.end() ? nullptr : it->second.get();
}

Node* Tree::root(const BlockId& id) {
  NodePtr& node = nodes_[id];
  if (!node) {
    node = std::make_shared<Node>();
    node->block = std::make_shared<const Block>(Block{id, {}, 0, {}});
    node->root = true;
  }
  return node.get();
}

Node* Tree::create(BlockPtr block, Node* parent) {
  CHECK(parent->root || parent->block->full(), "a tail has no children");
  CHECK(parent->attached && parent->id() == block->parent);
  NodePtr& node = nodes_[block->id];
  CHECK(!node, "the block is known already");
  node = std::make_shared<Node>();
  node->block = std::move(block);
  node->parent = parent;
  CHECK(parent->children.insert(node.get()).second, "equal tokens, other id");
  ledger_.add(*node);
  review_loose(*parent);
  return node.get();
}

void Tree::detach(Node& node) {
  CHECK(node.attached && !node.root && node.children.empty());
  NodePtr alive = node.shared_from_this();
  ledger_.remove(node);
  if (node.loose_key != 0) {
    loose_.erase(node.loose_key);
    node.loose_key = 0;
  }
  if (node.page) {
    garbage_.push_back(std::move(node.page));
  }
  Node* parent = node.parent;
  parent->children.erase(&node);
  if (parent->recent == &node) {
    parent->recent = nullptr;
  }
  node.attached = false;
  node.parent = nullptr;
  nodes_.erase(node.id());
  review_loose(*parent);
  prune_root(parent);
}

void Tree::prune_root(Node* node) {
  if (node->root && node->children.empty()) {
    BlockId id = node->id();
    nodes_.erase(id);
  }
}

void Tree::add_cover(Node* node, Cover Node::*cover) {
  for (bool first = true; !node->root; node = node->parent, first = false) {
    Cover& count = node->*cover;
    bool covered = count.any();
    node->unwanted = false;
    change(*node, [&] { ++(first ? count.ends : count.children); });
    if (covered) {
      return;
    }
  }
}

void Tree::remove_cover(Node* node, Cover Node::*cover) {
  for (bool first = true; !node->root; node = node->parent, first = false) {
    Cover& count = node->*cover;
    CHECK((first ? count.ends : count.children) > 0);
    change(*node, [&] { --(first ? count.ends : count.children); });
    if (count.any()) {
      return;
    }
  }
}

bool Tree::settled(const Node& node) {
  if (!node.page) {
    return node.durable;
  }
  return node.ram.any() || node.uses > 0 || node.writing != Writing::kClean;
}

void Tree::review(Node& node) {
  if (!settled(node)) {
    unsettled_.push_back(node.shared_from_this());
  }
  review_loose(node);
}

void Tree::review_loose(Node& node) {
  bool loose =
      !node.root && node.durable && node.children.empty() && !node.kept.any();
  if (loose && node.loose_key == 0) {
    node.loose_key = next_loose_++;
    loose_.emplace(node.loose_key, &node);
  } else if (!loose && node.loose_key != 0) {
    loose_.erase(node.loose_key);
    node.loose_key = 0;
  }
}

const Node& Tree::root_of(const Node& node) {
  const Node* top = &node;
  while (!top->root) {
    top = top->parent;
  }
  return *top;
}

Node* Tree::full_child(const Node& parent, Tokens tokens) {
  if (tokens.size() != kPageTokens) {
    return nullptr;
  }
  auto it = parent.children.find(tokens);
  return it == parent.children.end() ? nullptr : *it;
}

Tree::Agreement Tree::best_child(const Node& parent, Tokens key) {
  Agreement best;
  auto offer = [&](Node* node) {
    std::size_t agree = common_prefix(tokens_of(node), key);
    bool better = agree > best.tokens || (agree == best.tokens && agree > 0 &&
                                          node->page && !best.node->page);
    if (better) {
      best = {node, agree};
    }
    return agree == best.tokens;
  };
  const auto& children = parent.children;
  auto middle = children.lower_bound(key);
  auto it = middle;
  for (int i = 0; i < kTieScan && it != children.end() && offer(*it); ++i) {
    ++it;
  }
  it = middle;
  for (int i = 0; i < kTieScan && it != children.begin(); ++i) {
    if (!offer(*--it)) {
      break;
    }
  }
  return best;
}

Node* Tree::extension(const Node& parent, Tokens tokens) {
  Node* any = nullptr;
  auto it = parent.children.upper_bound(tokens);
  for (int i = 0; i < kTieScan && it != parent.children.end(); ++i, ++it) {
    if (common_prefix(tokens_of(*it), tokens) < tokens.size()) {
      break;
    }
    if ((*it)->page) {
      return *it;
    }
    any = any ? any : *it;
  }
  return any;
}

}  // namespace afterglow::kv
