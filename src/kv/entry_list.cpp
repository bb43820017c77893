#include "kv/entry_list.h"

#include <algorithm>
#include <utility>

#include "kv/token_order.h"

namespace afterglow {
namespace {

using kv::Tokens;

/// The entry's tokens in the i-th block of its path.
Tokens tokens_in(const EntryBlocks& entry, std::size_t i) {
  const Block& block = *entry.blocks[i];
  const std::size_t rest = entry.listed.record.length - block.start;
  return Tokens(block.tokens).first(std::min(block.tokens.size(), rest));
}

std::size_t shared_tokens(const EntryBlocks& a, const EntryBlocks& b) {
  const EntryRecord& left = a.listed.record;
  const EntryRecord& right = b.listed.record;
  if (left.root != right.root) return 0;
  const auto [differ, other] = std::ranges::mismatch(left.path, right.path);
  if (differ == left.path.end() || other == right.path.end()) {
    return std::min(left.length, right.length);
  }
  const auto i = static_cast<std::size_t>(differ - left.path.begin());
  return a.blocks[i]->start +
         kv::common_prefix(tokens_in(a, i), tokens_in(b, i));
}

bool precedes(const EntryBlocks& a, const EntryBlocks& b) {
  const EntryRecord& left = a.listed.record;
  const EntryRecord& right = b.listed.record;
  if (left.root != right.root) return left.root < right.root;
  const std::size_t shared = shared_tokens(a, b);
  if (shared == left.length || shared == right.length) {
    return left.length < right.length;
  }
  const std::size_t block = shared / kPageTokens;
  const std::size_t at = shared % kPageTokens;
  return tokens_in(a, block)[at] < tokens_in(b, block)[at];
}

Branch branch_at(const EntryBlocks& entry, std::size_t at) {
  Branch branch;
  branch.at = at;
  branch.lead = std::min(at, kBranchLead);
  std::size_t from = at - branch.lead;
  const std::size_t end =
      std::min(from + kBranchTokens, entry.listed.record.length);
  while (from < end) {
    const Tokens rest =
        tokens_in(entry, from / kPageTokens).subspan(from % kPageTokens);
    const Tokens part = rest.first(std::min(rest.size(), end - from));
    branch.tokens.insert(branch.tokens.end(), part.begin(), part.end());
    from += part.size();
  }
  return branch;
}

/// A node on the way to the entry at hand, and the first entry through it.
struct OpenNode {
  std::size_t tokens = 0;
  EntryBlocks* first = nullptr;
};

/// Sets the branches of entries, given in their order with what they share.
void find_branches(const std::vector<EntryBlocks*>& ordered) {
  std::vector<OpenNode> open;
  for (EntryBlocks* entry : ordered) {
    const std::size_t shared = entry->listed.shared_tokens;
    EntryBlocks* left = nullptr;
    while (!open.empty() && open.back().tokens > shared) {
      left = open.back().first;
      open.pop_back();
    }
    const std::size_t above = open.empty() ? 0 : open.back().tokens;
    if (left != nullptr && above < shared) {
      left->listed.branches.push_back(branch_at(*left, shared));
      open.push_back({shared, left});
    }
    entry->listed.branches.push_back(branch_at(*entry, shared));
    open.push_back({entry->listed.record.length, entry});
  }
  for (EntryBlocks* entry : ordered) {
    std::ranges::sort(entry->listed.branches, {}, &Branch::at);
  }
}

}  // namespace

std::vector<ListedEntry> place_in_order(std::vector<EntryBlocks> entries) {
  std::vector<EntryBlocks*> ordered;
  ordered.reserve(entries.size());
  for (EntryBlocks& entry : entries) {
    ordered.push_back(&entry);
  }
  std::ranges::sort(ordered, [](EntryBlocks* a, EntryBlocks* b) {
    return precedes(*a, *b);
  });
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    ListedEntry& listed = ordered[i]->listed;
    listed.order = i;
    if (i > 0) {
      listed.shared_tokens = shared_tokens(*ordered[i - 1], *ordered[i]);
    }
  }
  find_branches(ordered);
  std::vector<ListedEntry> listed;
  listed.reserve(entries.size());
  for (EntryBlocks& entry : entries) {
    listed.push_back(std::move(entry.listed));
  }
  return listed;
}

}  // namespace afterglow
