#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "base/page.h"
#include "kv/block.h"
#include "kv/token_order.h"

namespace afterglow::kv {

struct Entry;

/// How often a node is reached by something that runs from the root to an
/// end: ends counts those that end here, children the children reached.
struct Cover {
  std::uint32_t ends = 0;
  std::uint32_t children = 0;

  bool any() const { return ends + children > 0; }
};

enum class Writing : std::uint8_t {
  kClean,   // durable, or not to be written
  kQueued,  // waits for take_dirty
  kTaken,   // the store is writing it
};

/// A block's place in the tree, or a root (whose block has no tokens).
/// A node that left the tree while a Match used it lives on with attached
/// false and takes no part in anything.
struct Node : std::enable_shared_from_this<Node> {
  BlockPtr block;
  Node* parent = nullptr;
  std::set<Node*, TokenLess> children;
  /// The entries that end inside a child, ordered by their tokens in it.
  std::set<Entry*, TokenLess> ends;
  /// The child last walked to, where a longer use of this node is likely.
  Node* recent = nullptr;

  PagePtr page;
  std::uint64_t file_bytes = 0;
  bool root = false;
  bool attached = true;
  bool durable = false;
  bool unwanted = false;  // its entries were taken out on purpose
  Writing writing = Writing::kClean;
  std::uint32_t uses = 0;  // by Matches and Trails

  Cover kept;    // by entries
  Cover ram;     // by the part of entries that is to stay in RAM
  Cover pinned;  // by pinned entries

  /// After a failed write: until when a use is no reason to try again.
  std::chrono::steady_clock::time_point retry_at{};
  std::uint64_t ticket = 0;     // of its sealing, while not clean
  std::uint64_t queue_key = 0;  // its place in the queue, while queued
  std::uint64_t loose_key = 0;  // its place among the loose, 0: none
  std::chrono::steady_clock::time_point sealed_at{};
  /// Tails on disk (or being written) that go once this block is durable.
  std::vector<BlockId> supersedes;

  const BlockId& id() const { return block->id; }
  std::size_t index() const { return block->start / kPageTokens; }
  std::size_t end() const { return block->start + block->tokens.size(); }
};

using NodePtr = std::shared_ptr<Node>;

inline Tokens tokens_of(const Node* node) {
  return node->block->tokens;
}

}  // namespace afterglow::kv
