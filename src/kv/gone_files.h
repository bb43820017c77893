#pragma once

#include <unordered_set>
#include <utility>
#include <vector>

#include "kv/block.h"

namespace afterglow::kv {

/// Files that the store is to unlink, in the order in which they became
/// unwanted: children before parents. Thread: one at a time.
class GoneFiles {
 public:
  void add(const BlockId& id) {
    if (members_.insert(id).second) {
      order_.push_back(id);
    }
  }
  /// The block is back before its file went.
  void keep(const BlockId& id) {
    if (members_.erase(id) > 0) {
      std::erase(order_, id);
    }
  }
  std::vector<BlockId> take() {
    members_.clear();
    return std::exchange(order_, {});
  }

 private:
  std::vector<BlockId> order_;
  std::unordered_set<BlockId, BlockIdHash> members_;
};

}  // namespace afterglow::kv
