#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kv/prompt_cache.h"

namespace afterglow {

/// Where a branch of the tree of prefixes begins.
struct Branch {
  std::size_t at = 0;  // in the entry, in tokens
  /// The entry's tokens around there, at most kBranchLead before.
  std::vector<Token> tokens;
  std::size_t lead = 0;  // how many of them lie before
};

constexpr std::size_t kBranchLead = 16;    // tokens
constexpr std::size_t kBranchTokens = 64;  // that a Branch has at most

/// An entry beside the others of a list, for people to look at.
struct ListedEntry {
  EntryRecord record;
  std::size_t ram_blocks = 0;   // of its path
  std::size_t disk_blocks = 0;  // durable
  std::uint64_t bytes = 0;      // of all its blocks, each counted once
  /// Its place in the order of tokens, below one root after the other.
  std::size_t order = 0;
  /// Leading tokens it has in common with the one before in that order, and
  /// so the most it shares with any before.
  std::size_t shared_tokens = 0;
  /// Where it leaves what the entries before it have, and where later ones
  /// leave it before its end: each branch of the tree of prefixes belongs to
  /// the first entry in it. Ascending, from shared_tokens on.
  std::vector<Branch> branches;
};

/// What orders an entry: blocks[i] is that of record.path[i].
struct EntryBlocks {
  ListedEntry listed;
  std::vector<BlockPtr> blocks;
};

/// Sets order, shared_tokens and branches. Keeps the list's own order.
/// Cost: n log n comparisons, each of a path's ids and one block's tokens.
/// There are fewer than 2 n branches.
std::vector<ListedEntry> place_in_order(std::vector<EntryBlocks> entries);

}  // namespace afterglow
