#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "kv/cache_fixture.h"

namespace afterglow {
namespace {

using F = CacheFixture;

// Sequences that share long prefixes, so that threads meet.
TokenList sequence(std::mt19937& random) {
  TokenList all = F::tokens(256 * (random() % 3), 1);
  all = F::tokens(all.size() + 200 * (random() % 3), 2, all);
  return F::tokens(all.size() + 1 + random() % 300, 3 + random() % 3, all);
}

TEST(Threads, SequencesWriterAndToolsTogether) {
  CacheLimits limits;
  limits.ram_bytes = 12 * F::kPageBytes;
  limits.entries = 20;
  PromptCache cache(F::kPageBytes, limits, true);
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;

  auto sequences = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < 300; ++i) {
      TokenList all = sequence(random);
      Match match = cache.lookup(F::root(), all);
      std::vector<PathBlock> prefix;
      for (const PathBlock& known : match.path()) {
        std::size_t start = known.block->start;
        std::size_t n = std::min(kPageTokens, match.tokens() - start);
        if (known.page && !F::holds(*known.page, all, start, n)) {
          ++wrong;
        }
        if (!known.page || n < kPageTokens || prefix.size() * 256 != start) {
          break;
        }
        prefix.push_back(known);
      }
      Trail trail = cache.start(
          F::root(),
          prefix,
          {{EntryType::kSystem, 1 + random() % 300},
           {EntryType::kUser, all.size() / 2}}
      );
      match = Match();
      F::extend(trail, all, all.size());
    }
  };
  std::thread a(sequences, 1);
  std::thread b(sequences, 2);
  std::thread writer([&] {
    std::mt19937 random(3);
    auto far = std::chrono::steady_clock::now() + std::chrono::hours(1);
    while (!stop) {
      for (auto& dirty : cache.take_dirty(far, std::chrono::milliseconds(0))) {
        if (random() % 8) {
          cache.set_durable(dirty.block->id, F::kPageBytes);
        } else {
          cache.set_write_failed(dirty.block->id);
        }
      }
      for (const BlockId& id : cache.evict_disk(random() % 8192)) {
        cache.forget_disk(id);
      }
      cache.take_superseded();
      for (const BlockId& id : cache.take_used()) {
        if (random() % 8 == 0) {
          cache.renew(id);
        }
      }
      cache.expire();
    }
  });
  std::thread tools([&] {
    std::mt19937 random(4);
    while (!stop) {
      auto entries = cache.entries();
      cache.merge_entries(entries);
      for (const EntryRecord& entry : entries) {
        if (random() % 16 == 0) {
          cache.set_pinned(entry.path.back(), entry.length, random() % 2);
        } else if (random() % 64 == 0) {
          cache.remove(entry.path.back(), entry.length);
        }
        if (random() % 16 == 0) {
          cache.forget_disk(entry.path[random() % entry.path.size()]);
        }
        if (random() % 16 == 0) {
          cache.requeue(entry.path.back());
        }
      }
      cache.shrink_ram(random() % 8192);
      cache.stats();
      cache.durable_blocks();
    }
  });
  a.join();
  b.join();
  stop = true;
  cache.wake();
  writer.join();
  tools.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(cache.stats().hits, 0u);
  cache.verify();
}

}  // namespace
}  // namespace afterglow
