#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "kv/cache_fixture.h"

namespace afterglow {
namespace {

using F = CacheFixture;
using std::chrono::milliseconds;

std::size_t agreement(const TokenList& a, const TokenList& b) {
  auto end = std::min(a.size(), b.size());
  std::size_t n = 0;
  while (n < end && a[n] == b[n]) {
    ++n;
  }
  return n;
}

/// Everything ever inserted, as plain token vectors.
struct Model {
  std::vector<TokenList> inserted;
  std::vector<TokenList> pinned;
  bool removed = false;  // something was, so not all need be found

  static std::size_t longest(
      const std::vector<TokenList>& lists, const TokenList& prompt
  ) {
    std::size_t best = 0;
    for (const TokenList& list : lists) {
      best = std::max(best, agreement(list, prompt));
    }
    return best;
  }
};

/// A new prompt: mostly a known one, cut and continued.
TokenList prompt_from(const Model& model, std::mt19937& random, Token seed) {
  TokenList prompt;
  if (!model.inserted.empty() && random() % 8 != 0) {
    prompt = model.inserted[random() % model.inserted.size()];
    std::size_t cuts[] = {
        prompt.size(),
        random() % (prompt.size() + 1),
        prompt.size() / 256 * 256};
    prompt.resize(cuts[random() % 3]);
  }
  std::size_t more[] = {0, 1, random() % 40, random() % 600, 256};
  return F::tokens(prompt.size() + more[random() % 5], seed, prompt);
}

/// What a store would have: files by name, in no useful order.
struct Disk {
  std::map<BlockId, BlockPtr> files;
  std::set<BlockId> lost;  // others removed them
  std::vector<EntryRecord> manifest;
  bool failed = false;  // some block could not be written

  void write(CacheFixture& f, std::mt19937& random, bool may_fail) {
    for (auto& dirty : f.cache.take_dirty(F::kNow, milliseconds(0))) {
      bool orphan =
          dirty.block->start > 0 && !files.contains(dirty.block->parent);
      if (orphan || (may_fail && random() % 10 == 0)) {
        f.cache.set_write_failed(dirty.block->id);
        failed = true;
      } else {
        files[dirty.block->id] = dirty.block;
        lost.erase(dirty.block->id);
        f.cache.set_durable(dirty.block->id, F::kPageBytes);
      }
    }
    ASSERT_NO_FATAL_FAILURE(unlink(f.cache.take_superseded()));
  }

  /// Children go before parents, and only files that are there.
  void unlink(const std::vector<BlockId>& ids) {
    for (const BlockId& id : ids) {
      for (const auto& [other, block] : files) {
        ASSERT_NE(block->parent, id) << "a parent went before its child";
      }
      ASSERT_TRUE(files.erase(id) == 1 || lost.erase(id) == 1);
    }
  }

  /// The longest prefix that the files hold.
  std::size_t longest(const TokenList& prompt) const {
    std::size_t best = 0;
    for (const auto& [id, block] : files) {
      TokenList all;
      const Block* at = block.get();
      std::vector<const Block*> way{at};
      while (at->start > 0) {
        auto it = files.find(at->parent);
        if (it == files.end()) {
          break;
        }
        way.push_back(at = it->second.get());
      }
      if (at->start > 0) {
        continue;
      }
      for (auto it = way.rbegin(); it != way.rend(); ++it) {
        all.insert(all.end(), (*it)->tokens.begin(), (*it)->tokens.end());
      }
      best = std::max(best, agreement(all, prompt));
    }
    return best;
  }

  /// Somebody else removes files, children before parents.
  void lose(std::mt19937& random) {
    for (std::size_t n = random() % (files.size() + 1); n > 0; --n) {
      auto leaf = std::find_if(files.begin(), files.end(), [&](auto& file) {
        return std::none_of(files.begin(), files.end(), [&](auto& other) {
          return other.second->parent == file.first;
        });
      });
      lost.insert(leaf->first);
      files.erase(leaf);
    }
  }
  /// What a store does about used blocks.
  void look(CacheFixture& f) const {
    for (const BlockId& id : f.cache.take_used()) {
      if (f.cache.is_durable(id) && !files.contains(id)) {
        f.cache.renew(id);
      }
    }
  }
  /// What a store does about all it believes durable.
  void notice(CacheFixture& f) const {
    for (const BlockId& id : f.cache.durable_blocks()) {
      if (!files.contains(id)) {
        f.cache.forget_disk(id);
      }
    }
  }

  void restart(CacheFixture& f, std::mt19937& random) const {
    std::vector<BlockPtr> blocks;
    for (const auto& [id, block] : files) {
      blocks.push_back(block);
    }
    std::shuffle(blocks.begin(), blocks.end(), random);
    std::size_t when = random() % (blocks.size() + 1);
    for (std::size_t i = 0; i <= blocks.size(); ++i) {
      if (i == when) {
        f.cache.merge_entries(manifest);
      }
      if (i < blocks.size()) {
        f.cache.add_disk_block(blocks[i], F::kPageBytes, *f.time - 1000);
      }
    }
  }
};

void check_match(CacheFixture& f, const TokenList& prompt) {
  Match match = f.cache.lookup(F::root(), prompt);
  std::size_t end = 0;
  BlockId parent = F::root();
  for (const PathBlock& known : match.path()) {
    ASSERT_EQ(known.block->start, end);
    ASSERT_EQ(known.block->parent, parent);
    parent = known.block->id;
    std::size_t n = std::min(match.tokens() - end, kPageTokens);
    ASSERT_TRUE(std::equal(
        known.block->tokens.begin(),
        known.block->tokens.begin() + n,
        prompt.begin() + end
    ));
    if (known.page) {
      ASSERT_TRUE(F::holds(*known.page, prompt, end, n));
    }
    end += n;
  }
  ASSERT_EQ(end, match.tokens());
}

void unpin_all(CacheFixture& f) {
  for (const EntryRecord& entry : f.cache.entries()) {
    f.cache.set_pinned(entry.path.back(), entry.length, false);
  }
}

struct Case {
  std::size_t ram_pages;
  std::size_t entries;
  bool with_disk;
};

class Property : public testing::TestWithParam<Case> {};

TEST_P(Property, AgreesWithPlainTokenVectors) {
  const Case& c = GetParam();
  constexpr std::size_t kMany = 1'000'000;
  bool bounded = c.ram_pages < kMany || c.entries < kMany;
  for (unsigned seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    CacheLimits limits;
    limits.ram_bytes = c.ram_pages * F::kPageBytes;
    limits.entries = c.entries;
    auto f = std::make_unique<F>(limits, c.with_disk);
    Model model;
    Disk disk;
    std::vector<Match> held;
    for (int step = 0; step < 400; ++step) {
      TokenList prompt = prompt_from(model, random, 2 + step);
      *f->time += 1000;
      // Exact without budgets; with them never more than was inserted, and
      // never less than what is pinned or on disk.
      std::size_t found = f->found(prompt);
      std::size_t known = Model::longest(model.inserted, prompt);
      if (bounded || model.removed) {
        ASSERT_LE(found, known);
        ASSERT_GE(found, Model::longest(model.pinned, prompt));
      } else {
        ASSERT_EQ(found, known);
      }
      if (step % 20 == 0) {
        ASSERT_NO_FATAL_FAILURE(disk.unlink(f->cache.take_superseded()));
        ASSERT_GE(found, disk.longest(prompt));
      }
      ASSERT_NO_FATAL_FAILURE(check_match(*f, prompt));

      switch (random() % 12) {
        case 6: {
          if (random() % 6 != 0) {
            break;
          }
          auto entries = f->cache.entries();
          if (random() % 4 == 0) {
            ASSERT_NO_FATAL_FAILURE(disk.unlink(f->cache.clear(F::root())));
            if (held.empty()) {
              ASSERT_EQ(f->stats().entries, 0u);
              ASSERT_EQ(f->stats().blocks, 0u);
            }
            model.pinned.clear();
          } else if (!entries.empty()) {
            const EntryRecord& entry = entries[random() % entries.size()];
            bool pinned = entry.pinned;
            if (!pinned) {
              f->cache.remove(entry.path.back(), entry.length);
            }
          }
          model.removed = true;
          break;
        }
        case 0:
          held.push_back(f->cache.lookup(F::root(), prompt));
          break;
        case 1:
          held.clear();
          break;
        case 2: {
          auto entries = f->cache.entries();
          if (entries.empty() || model.pinned.size() > 3) {
            break;
          }
          const EntryRecord& entry = entries[random() % entries.size()];
          for (const TokenList& list : model.inserted) {
            BlockId id = F::root();
            for (std::size_t i = 0; i < entry.path.size(); ++i) {
              std::size_t n = std::min(
                  kPageTokens, list.size() - std::min(list.size(), i * 256)
              );
              id = block_id(id, i * 256, std::span(list).subspan(i * 256, n));
              if (id != entry.path[i]) {
                break;
              }
            }
            if (id == entry.path.back() && list.size() >= entry.length) {
              ASSERT_TRUE(f->cache.set_pinned(id, entry.length, true));
              model.pinned.push_back({list.begin(), list.begin() + entry.length}
              );
              break;
            }
          }
          break;
        }
        case 3:
          if (bounded) {
            f->cache.shrink_ram((random() % 8) * F::kPageBytes);
          }
          break;
        case 4:
          if (c.with_disk && bounded) {
            for (auto& id : f->cache.evict_disk(random() % 8192)) {
              ASSERT_EQ(disk.files.erase(id), 1u);
              f->cache.forget_disk(id);
            }
          }
          break;
        case 5:
          if (c.with_disk && random() % 4 == 0) {
            held.clear();
            bool all_written = !bounded;
            ASSERT_NO_FATAL_FAILURE(disk.write(*f, random, bounded));
            disk.manifest = f->cache.entries();
            f->cache.verify();
            auto time = f->time;
            f = std::make_unique<F>(limits, true);
            *f->time = *time;
            disk.restart(*f, random);
            model.pinned.clear();
            unpin_all(*f);
            if (all_written && !model.removed) {
              ASSERT_EQ(f->found(prompt), known) << "lost by the restart";
            } else {
              ASSERT_EQ(f->found(prompt), disk.longest(prompt));
            }
            f->cache.verify();
          }
          break;
        case 7:
          if (c.with_disk && random() % 3 == 0) {
            held.clear();
            ASSERT_NO_FATAL_FAILURE(disk.write(*f, random, false));
            unpin_all(*f);
            model.pinned.clear();
            model.removed = true;
            bool noticed = random() % 2;
            disk.lose(random);
            if (noticed) {
              disk.notice(*f);
            }
            f->run(prompt);
            model.inserted.push_back(prompt);
            disk.look(*f);
            ASSERT_NO_FATAL_FAILURE(disk.write(*f, random, false));
            if (!bounded) {
              ASSERT_EQ(disk.longest(prompt), prompt.size()) << noticed;
            }
            disk.notice(*f);
            f->cache.verify();
          }
          break;
        default: {
          std::vector<Boundary> boundaries;
          if (!prompt.empty() && random() % 2) {
            boundaries = {
                {EntryType::kSystem, random() % prompt.size()},
                {EntryType::kUser, 1 + random() % prompt.size()}};
          }
          f->run(prompt, boundaries);
          model.inserted.push_back(prompt);
        }
      }
      if (c.with_disk && random() % 3 == 0) {
        ASSERT_NO_FATAL_FAILURE(disk.write(*f, random, bounded));
      }
      if (disk.failed && c.ram_pages == 0) {
        model.pinned.clear();  // neither disk nor RAM has them
        disk.failed = false;
        unpin_all(*f);
      }
      CacheStats stats = f->stats();
      if (held.empty() && stats.dirty_blocks == 0 && model.pinned.empty()) {
        ASSERT_LE(stats.ram_bytes, limits.ram_bytes);
        ASSERT_LE(stats.entries, limits.entries);
      }
      if (step % 10 == 0) {
        f->cache.verify();
      }
    }
    held.clear();
    f->cache.verify();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Budgets,
    Property,
    testing::Values(
        Case{1'000'000, 1'000'000, false},
        Case{1'000'000, 1'000'000, true},
        Case{40, 1'000'000, false},
        Case{40, 1'000'000, true},
        Case{1'000'000, 12, false},
        Case{5, 5, false},
        Case{5, 5, true},
        Case{0, 1'000'000, true},
        Case{0, 0, true}
    )
);

}  // namespace
}  // namespace afterglow
