// Prints the cost of a lookup, of a sealed page and of the list of entries
// against their number, and the memory of a block.

#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "kv/entry_list.h"
#include "kv/prompt_cache.h"

namespace afterglow {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPromptTokens = 4000;

std::vector<Token> tokens(std::size_t n, std::size_t shared, Token seed) {
  std::vector<Token> list(n);
  for (std::size_t i = 0; i < n; ++i) {
    list[i] = static_cast<Token>(i < shared ? i : i * 7919 + seed);
  }
  return list;
}

void insert(
    PromptCache& cache, const std::vector<Token>& all, const PagePtr& page
) {
  Trail trail = cache.start({}, {}, {});
  for (std::size_t at = 0; at < all.size(); at += kPageTokens) {
    std::size_t n = std::min(kPageTokens, all.size() - at);
    trail.append(std::span(all).subspan(at, n), page);
  }
}

double microseconds(Clock::duration time, int times) {
  return std::chrono::duration<double, std::micro>(time).count() / times;
}

/// Entries of entry_tokens that agree in the first `shared`, then part.
void measure(
    std::size_t entries, std::size_t entry_tokens, std::size_t shared
) {
  auto page = std::make_shared<const Page>(AlignedBuffer(4096));
  PromptCache cache(4096, {}, false);
  insert(cache, tokens(kPromptTokens, shared, 0), page);
  std::size_t memory = mallinfo2().uordblks;
  auto begin = Clock::now();
  for (std::size_t i = 1; i < entries; ++i) {
    insert(cache, tokens(entry_tokens, shared, static_cast<Token>(i)), page);
  }
  auto filled = Clock::now() - begin;
  memory = mallinfo2().uordblks - memory;
  std::size_t blocks = cache.stats().blocks;

  constexpr int kTimes = 200;
  std::vector<Token> prompt = tokens(kPromptTokens, shared, 0);
  Clock::duration worst{};
  Clock::duration sum{};
  for (int i = 0; i < kTimes; ++i) {
    begin = Clock::now();
    Match match = cache.lookup({}, prompt);
    auto time = Clock::now() - begin;
    sum += time;
    worst = std::max(worst, time);
    if (match.tokens() != kPromptTokens) {
      std::printf("wrong: %zu tokens found\n", match.tokens());
    }
  }
  begin = Clock::now();
  insert(cache, tokens(kPromptTokens, shared, -1), page);
  auto sealed = Clock::now() - begin;
  begin = Clock::now();
  std::size_t listed = cache.list_entries().size();
  auto listing = Clock::now() - begin;
  double added = static_cast<double>(std::max<std::size_t>(entries - 1, 1));
  std::printf(
      "%8zu entries of %5zu tokens, %3zu shared: lookup of %zu tokens "
      "%6.1f us (worst %6.1f), seal a page %5.1f us, filled at %5.1f us an "
      "entry, listed at %4.2f us, %zu blocks, %.0f bytes a block\n",
      entries,
      entry_tokens,
      shared,
      kPromptTokens,
      microseconds(sum, kTimes),
      microseconds(worst, 1),
      microseconds(sealed, kPromptTokens / kPageTokens + 1),
      microseconds(filled, 1) / added,
      microseconds(listing, 1) / static_cast<double>(listed),
      blocks,
      entries > 1 ? static_cast<double>(memory) / added *
                        (added / static_cast<double>(blocks - 16))
                  : 0
  );
}

}  // namespace
}  // namespace afterglow

int main() {
  for (std::size_t entries : {10, 1000, 100000}) {
    afterglow::measure(entries, 300, 0);
    afterglow::measure(entries, 256, 200);
    afterglow::measure(entries, 256, 255);
    afterglow::measure(entries, 200, 100);
  }
}
