#pragma once

#include <deque>
#include <unordered_map>
#include <vector>

#include "kv/prompt_cache.h"

namespace afterglow::kv {

/// Entries from a manifest whose last block is not known yet; at most `limit`
/// of them, first come first forgotten. Thread: one at a time.
class WaitingEntries {
 public:
  explicit WaitingEntries(std::size_t limit) : limit_(limit) {}

  /// Of two records for the same block and length the newer stays.
  void add(const EntryRecord& record) {
    const BlockId& last = record.path.back();
    auto& records = by_last_[last];
    for (EntryRecord& known : records) {
      if (known.length == record.length) {
        if (known.last_use_ns <= record.last_use_ns) {
          known = record;
        }
        return;
      }
    }
    records.push_back(record);
    records.back().path = {last};
    order_.push_back(last);
    if (order_.size() > limit_) {
      by_last_.erase(order_.front());
      order_.pop_front();
    }
  }

  void clear() {
    by_last_.clear();
    order_.clear();
  }

  std::vector<EntryRecord> take(const BlockId& last) {
    auto it = by_last_.find(last);
    if (it == by_last_.end()) {
      return {};
    }
    std::vector<EntryRecord> records = std::move(it->second);
    by_last_.erase(it);
    return records;
  }

 private:
  std::size_t limit_;
  std::unordered_map<BlockId, std::vector<EntryRecord>, BlockIdHash> by_last_;
  std::deque<BlockId> order_;  // may name blocks that were taken since
};

}  // namespace afterglow::kv
