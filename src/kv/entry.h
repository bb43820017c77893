#pragma once

#include <cstdint>
#include <list>
#include <vector>

#include "kv/node.h"
#include "kv/prompt_cache.h"

namespace afterglow::kv {

struct TrailState;

/// The first `length` tokens on the way from a root to `node`, which holds
/// the last of them. No two entries have the same tokens below one root.
struct Entry {
  Node* node = nullptr;
  std::size_t length = 0;
  EntryType type = EntryType::kAssistant;
  std::int64_t last_use_ns = 0;
  std::uint64_t use = 0;  // orders entries used at the same time
  std::uint64_t number = 0;
  std::uint64_t hits = 0;
  std::int64_t ttl_ns = 0;
  bool pinned = false;
  std::int64_t pin_time_ns = 0;
  /// Made for a block found on disk, until someone uses or names it.
  bool found = false;
  /// The last node whose page this entry keeps in RAM; null: none.
  Node* ram_end = nullptr;
  /// The running sequence that makes it.
  TrailState* owner = nullptr;
  std::list<Entry>::iterator self;
};

/// The part of the entry's tokens that lies in its last block.
inline Tokens tokens_of(const Entry* entry) {
  return Tokens(entry->node->block->tokens)
      .first(entry->length - entry->node->block->start);
}

/// What a Trail knows; guarded by the cache's mutex but for its own thread's
/// reads of length, last_id and pages.
struct TrailState {
  BlockId root;
  std::vector<NodePtr> nodes;        // of the blocks that are in the tree
  std::vector<PagePtr> pages;        // of all blocks
  std::vector<Boundary> boundaries;  // still to come, nearest last
  std::size_t length = 0;            // tokens appended
  std::size_t covered = 0;           // tokens in the tree
  BlockId last_id;
  bool dropped = false;        // this and all later blocks stay outside
  Entry* assistant = nullptr;  // the entry that advances
  std::vector<Entry*> owned;   // it and those of the boundaries
};

}  // namespace afterglow::kv
