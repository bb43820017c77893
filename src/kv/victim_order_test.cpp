#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <random>
#include <set>

#include "kv/cache_fixture.h"

namespace afterglow {
namespace {

using F = CacheFixture;

// What mlx_lm 0.32.2's LRUPromptCache.CacheOrder does, in its own terms.
struct MlxOrder {
  std::array<std::deque<int>, 3> lrus;

  std::size_t size() const {
    return lrus[0].size() + lrus[1].size() + lrus[2].size();
  }
  void push(int key, EntryType type) {
    lrus[static_cast<int>(type)].push_back(key);
  }
  int pop() {
    int from = 2;
    for (int i = 0; i + 1 < 3; ++i) {
      if (!lrus[i].empty() && lrus[i].size() >= lrus[i + 1].size()) {
        from = i;
        break;
      }
    }
    int key = lrus[from].front();
    lrus[from].pop_front();
    return key;
  }
};

TEST(VictimOrder, IsMlxLmsOnUnrelatedSequences) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    CacheLimits limits;
    limits.entries = 1 + random() % 12;
    F f(limits);
    MlxOrder order;
    std::set<int> alive;
    std::map<BlockId, int> keys;
    for (int key = 1; key <= 150; ++key) {
      auto type = static_cast<EntryType>(random() % 3);
      *f.time += 1000;
      TokenList all = F::tokens(40 + random() % 300, key);
      BlockId first = block_id(
          F::root(),
          0,
          std::span(all).first(std::min<std::size_t>(256, all.size()))
      );
      keys[first] = key;
      f.run(all, {{type, all.size()}});
      order.push(key, type);
      alive.insert(key);
      while (order.size() > limits.entries) {
        alive.erase(order.pop());
      }
      std::set<int> kept;
      for (const EntryRecord& entry : f.cache.entries()) {
        kept.insert(keys.at(entry.path[0]));
      }
      ASSERT_EQ(kept, alive) << "seed " << seed << " key " << key;
    }
    f.cache.verify();
  }
}

}  // namespace
}  // namespace afterglow
