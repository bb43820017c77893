#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "kv/ledger.h"
#include "kv/node.h"

namespace afterglow::kv {

/// The nodes of all roots, their sums, and the list of those that may have to
/// go. Nothing leaves the tree inside its functions but by detach.
/// Thread: one at a time.
class Tree {
 public:
  /// The node of a block or root; null when unknown.
  Node* find(const BlockId& id) const;
  /// The root of that id, made when missing.
  Node* root(const BlockId& id);
  /// Adds a block below its parent.
  /// Requires: the block is unknown, parent is a root or full.
  Node* create(BlockPtr block, Node* parent);
  /// Takes a node without children out. Its page, if any, goes to garbage.
  void detach(Node& node);

  /// Forgets a root without children.
  void prune_root(Node* node);

  /// Runs edit, which may change the node's fields, and keeps all sums right.
  template <class Edit>
  void change(Node& node, Edit edit) {
    ledger_.remove(node);
    edit();
    ledger_.add(node);
    review(node);
  }

  /// Counts one more (or one less) end at node, and its ancestors' children
  /// as far as that changes whether they are covered. A root ends the walk.
  void add_cover(Node* node, Cover Node::*cover);
  void remove_cover(Node* node, Cover Node::*cover);

  /// Whether the node may stay as it is: its page is wanted or cannot go, or
  /// it has none and is on disk.
  static bool settled(const Node& node);
  /// Nodes that were not settled when last changed.
  std::vector<NodePtr>& unsettled() { return unsettled_; }

  /// The root above a node, or the node itself.
  static const Node& root_of(const Node& node);
  /// The full child with exactly these tokens, or null.
  static Node* full_child(const Node& parent, Tokens tokens);
  /// The child that agrees longest with key; of several the one in RAM.
  struct Agreement {
    Node* node = nullptr;
    std::size_t tokens = 0;
  };
  static Agreement best_child(const Node& parent, Tokens key);
  /// A child that has these tokens and more; preferably one in RAM.
  static Node* extension(const Node& parent, Tokens tokens);

  const Ledger& ledger() const { return ledger_; }
  /// Durable leaves that no entry covers, longest so first.
  const std::map<std::uint64_t, Node*>& loose() const { return loose_; }
  const std::unordered_map<BlockId, NodePtr, BlockIdHash>& nodes() const {
    return nodes_;
  }
  /// Pages to release once the cache's mutex is free.
  std::vector<PagePtr>& garbage() { return garbage_; }

 private:
  void review(Node& node);
  void review_loose(Node& node);

  std::unordered_map<BlockId, NodePtr, BlockIdHash> nodes_;
  Ledger ledger_;
  std::map<std::uint64_t, Node*> loose_;
  std::uint64_t next_loose_ = 1;
  std::vector<NodePtr> unsettled_;
  std::vector<PagePtr> garbage_;
};

}  // namespace afterglow::kv
