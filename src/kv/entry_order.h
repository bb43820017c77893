#pragma once

#include <array>
#include <cstddef>
#include <set>

#include "kv/entry.h"

namespace afterglow::kv {

/// Entries by type and age, and mlx_lm's choice of whom to evict.
/// Source: mlx_lm 0.32.2, models/cache.py, LRUPromptCache.CacheOrder.pop.
class EntryOrder {
 public:
  /// Requires: type, last_use_ns and use stay as they are until erase.
  void insert(Entry* entry) { of(entry->type).insert(entry); }
  void erase(Entry* entry) { of(entry->type).erase(entry); }

  std::size_t size(EntryType type) const {
    return by_type_[static_cast<std::size_t>(type)].size();
  }
  std::size_t size() const {
    return by_type_[0].size() + by_type_[1].size() + by_type_[2].size();
  }

  /// The oldest entry of the first class that is not empty and has at least
  /// as many entries as the next. Entries that are not evictable count but
  /// are passed over; where the rule leaves none, any class will do, in order.
  template <class Evictable>
  Entry* victim(Evictable evictable) const {
    for (std::size_t i = 0; i < by_type_.size(); ++i) {
      bool last = i + 1 == by_type_.size();
      if (last || by_type_[i].size() >= by_type_[i + 1].size()) {
        if (Entry* entry = oldest(i, evictable)) {
          return entry;
        }
      }
    }
    for (std::size_t i = 0; i < by_type_.size(); ++i) {
      if (Entry* entry = oldest(i, evictable)) {
        return entry;
      }
    }
    return nullptr;
  }

  /// The first entry of a type that comes after (last_use_ns, use), or null.
  Entry* after(EntryType type, std::int64_t last_use_ns, std::uint64_t use)
      const {
    Entry key;
    key.last_use_ns = last_use_ns;
    key.use = use;
    const auto& set = by_type_[static_cast<std::size_t>(type)];
    auto it = set.upper_bound(&key);
    return it == set.end() ? nullptr : *it;
  }

 private:
  struct Older {
    bool operator()(const Entry* a, const Entry* b) const {
      return a->last_use_ns != b->last_use_ns ? a->last_use_ns < b->last_use_ns
                                              : a->use < b->use;
    }
  };
  using Set = std::set<Entry*, Older>;

  Set& of(EntryType type) { return by_type_[static_cast<std::size_t>(type)]; }

  template <class Evictable>
  Entry* oldest(std::size_t i, Evictable evictable) const {
    for (Entry* entry : by_type_[i]) {
      if (evictable(*entry)) {
        return entry;
      }
    }
    return nullptr;
  }

  std::array<Set, 3> by_type_;
};

}  // namespace afterglow::kv
