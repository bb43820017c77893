#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "base/token.h"

namespace afterglow::kv {

using Tokens = std::span<const Token>;

/// How many leading tokens agree.
inline std::size_t common_prefix(Tokens a, Tokens b) {
  constexpr std::size_t kStride = 16;
  std::size_t n = std::min(a.size(), b.size());
  std::size_t i = 0;
  while (i + kStride <= n &&
         std::memcmp(a.data() + i, b.data() + i, kStride * sizeof(Token)) == 0
  ) {
    i += kStride;
  }
  while (i < n && a[i] == b[i]) {
    ++i;
  }
  return i;
}

inline Tokens tokens_of(Tokens tokens) {
  return tokens;
}

/// Lexicographic order of whatever has tokens_of(): with it, the elements of
/// a set that agree longest with a key are neighbours of its lower bound.
struct TokenLess {
  using is_transparent = void;

  template <class A, class B>
  bool operator()(const A& left, const B& right) const {
    Tokens a = tokens_of(left);
    Tokens b = tokens_of(right);
    std::size_t n = common_prefix(a, b);
    return n < b.size() && (n == a.size() || a[n] < b[n]);
  }
};

/// The elements of a set ordered by TokenLess whose tokens are a prefix of
/// key (perhaps all of it), longest first. Each step skips to the longest
/// prefix still possible, so the cost does not grow with the set.
template <class Set>
std::vector<typename Set::value_type> prefixes_in(const Set& set, Tokens key) {
  std::vector<typename Set::value_type> found;
  std::size_t limit = set.empty() ? 0 : key.size();
  while (limit > 0) {
    auto it = set.upper_bound(key.first(limit));
    if (it == set.begin()) {
      break;
    }
    --it;
    std::size_t size = tokens_of(*it).size();
    std::size_t agree = common_prefix(tokens_of(*it), key.first(limit));
    if (agree == size) {
      found.push_back(*it);
      limit = agree - 1;
    } else {
      limit = agree;
    }
  }
  return found;
}

}  // namespace afterglow::kv
