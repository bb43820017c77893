#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "kv/prompt_cache.h"

namespace afterglow {

using TokenList = std::vector<Token>;

/// What tests of the cache share: pages that say which tokens they hold, a
/// clock that stands until moved, and whole sequences in one call.
struct CacheFixture {
  static constexpr std::size_t kPageBytes = 2048;
  static constexpr auto kNow = std::chrono::steady_clock::time_point{};

  static BlockId root(std::uint8_t n = 1) {
    BlockId id;
    id.bytes.fill(n);
    return id;
  }

  /// A page that holds the tokens of the block and a hash of all before.
  static PagePtr page_for(std::span<const Token> all, std::size_t start) {
    auto page = std::make_shared<Page>(AlignedBuffer(kPageBytes));
    std::memset(page->data(), 0, kPageBytes);
    std::uint64_t before = xxh3_64(std::as_bytes(all.first(start)));
    std::memcpy(page->data(), &before, sizeof before);
    std::size_t n = std::min(kPageTokens, all.size() - start);
    std::memcpy(page->data() + 8, all.data() + start, n * sizeof(Token));
    return page;
  }

  /// Whether a page holds the KV of the prompt's tokens [start, start + n).
  static bool holds(
      const Page& page,
      std::span<const Token> prompt,
      std::size_t start,
      std::size_t n
  ) {
    std::uint64_t before = xxh3_64(std::as_bytes(prompt.first(start)));
    return std::memcmp(page.data(), &before, sizeof before) == 0 &&
           std::memcmp(
               page.data() + 8, prompt.data() + start, n * sizeof(Token)
           ) == 0;
  }

  /// n tokens that begin with the given ones and go on in a way of their own.
  static TokenList tokens(std::size_t n, Token seed, TokenList prefix = {}) {
    TokenList list = std::move(prefix);
    for (std::size_t i = list.size(); i < n; ++i) {
      list.push_back(seed * 100000 + static_cast<Token>(i));
    }
    return list;
  }

  static CacheClock clock_of(std::shared_ptr<std::int64_t> ns) {
    return {
        [ns] { return *ns; },
        [ns] {
          return std::chrono::steady_clock::time_point(
              std::chrono::nanoseconds(*ns)
          );
        }};
  }

  explicit CacheFixture(CacheLimits limits = {}, bool with_disk = false)
      : cache(kPageBytes, limits, with_disk, clock_of(time)) {}

  /// Appends what the trail lacks of the sequence, up to `end`.
  static void extend(Trail& trail, const TokenList& all, std::size_t end) {
    while (trail.length() < end) {
      std::size_t start = trail.length();
      std::size_t n = std::min(kPageTokens, end - start);
      trail.append(
          std::span(all).subspan(start, n),
          page_for(std::span(all).first(end), start)
      );
    }
  }

  /// Runs a sequence through lookup and Trail as the engine does.
  Trail run(
      const TokenList& all,
      std::vector<Boundary> boundaries = {},
      const BlockId& below = root()
  ) {
    Match match = cache.lookup(below, all);
    std::vector<PathBlock> prefix;
    for (const PathBlock& known : match.path()) {
      bool whole = known.block->start + kPageTokens <= match.tokens();
      if (!whole || !known.block->full() || !known.page) {
        break;
      }
      prefix.push_back(known);
    }
    Trail trail = cache.start(below, prefix, std::move(boundaries));
    extend(trail, all, all.size());
    return trail;
  }
  void insert(const TokenList& all, std::vector<Boundary> boundaries = {}) {
    *time += 1000;
    run(all, std::move(boundaries));
  }

  /// Makes all dirty blocks durable, as a store would.
  std::vector<BlockPtr> write_all() {
    std::vector<BlockPtr> written;
    for (auto& dirty : cache.take_dirty(kNow, std::chrono::milliseconds(0))) {
      cache.set_durable(dirty.block->id, kPageBytes);
      written.push_back(dirty.block);
    }
    return written;
  }

  /// Tokens found.
  std::size_t found(const TokenList& prompt, const BlockId& below = root()) {
    return cache.lookup(below, prompt).tokens();
  }
  /// Tokens found whose pages are all in RAM.
  std::size_t found_in_ram(const TokenList& prompt) {
    Match match = cache.lookup(root(), prompt);
    for (const PathBlock& known : match.path()) {
      if (!known.page) {
        return known.block->start;
      }
    }
    return match.tokens();
  }
  CacheStats stats() const { return cache.stats(); }

  std::shared_ptr<std::int64_t> time =
      std::make_shared<std::int64_t>(1'700'000'000'000'000'000);
  PromptCache cache;
};

}  // namespace afterglow
