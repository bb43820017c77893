// Plays insertions into a PromptCache for test_lru_order.py, which plays the
// same into mlx_lm's LRUPromptCache.
//
//   lru_order MAX_ENTRIES
//   stdin:  a line each: <type> <token> <token> ...     an insertion
//                        hit <token> <token> ...        a lookup
//   stdout: a line for each: the entries left, one "<type>:<tokens>" each,
//           separated by spaces, tokens joined by commas, oldest first in type

#include <cstdio>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "kv/prompt_cache.h"

namespace {

using namespace afterglow;

constexpr std::size_t kPageBytes = 64;

struct Player {
  explicit Player(CacheLimits limits)
      : cache(kPageBytes, limits, false, clock()) {}

  /// Every call is later than the one before.
  CacheClock clock() {
    return {
        [this] { return ++now; },
        [] { return std::chrono::steady_clock::time_point(); }};
  }

  void insert(EntryType type, const std::vector<Token>& tokens) {
    Trail trail = cache.start(root, {}, {{type, tokens.size()}});
    BlockId parent = root;
    for (std::size_t at = 0; at < tokens.size(); at += kPageTokens) {
      auto part = std::span(tokens).subspan(
          at, std::min(kPageTokens, tokens.size() - at)
      );
      BlockPtr block = make_block(parent, at, part);
      parent = block->id;
      texts[block->id].assign(
          tokens.begin(), tokens.begin() + at + part.size()
      );
      trail.append(part, page);
    }
  }

  /// What the entry stands for: its last block may be longer than it.
  std::vector<Token> text(const EntryRecord& entry) const {
    std::vector<Token> all = texts.at(entry.path.back());
    all.resize(entry.length);
    return all;
  }

  std::int64_t now = 1'700'000'000'000'000'000;
  BlockId root;
  PagePtr page = std::make_shared<const Page>(AlignedBuffer(kPageBytes));
  std::unordered_map<BlockId, std::vector<Token>, BlockIdHash> texts;
  PromptCache cache;
};

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 2, "lru_order MAX_ENTRIES");
  CacheLimits limits;
  limits.entries = std::stoul(argv[1]);
  limits.min_match_tokens = 1;
  Player player(limits);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    std::vector<Token> tokens;
    for (Token token; words >> token;) {
      tokens.push_back(token);
    }
    if (what == "hit") {
      player.cache.lookup(player.root, tokens);
    } else {
      player.insert(
          what == "system" ? EntryType::kSystem
          : what == "user" ? EntryType::kUser
                           : EntryType::kAssistant,
          tokens
      );
    }
    std::string out;
    for (const EntryRecord& entry : player.cache.entries()) {
      out += out.empty() ? "" : " ";
      out += to_string(entry.type);
      char before = ':';
      for (Token token : player.text(entry)) {
        out += before + std::to_string(token);
        before = ',';
      }
    }
    std::puts(out.c_str());
  }
  player.cache.verify();
}
