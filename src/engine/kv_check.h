#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/page.h"
#include "base/result.h"
#include "base/token.h"
#include "engine/runner.h"

namespace afterglow {

/// How far given KV is from computed KV. Of a token and a layer, K and V
/// apart, the difference is |given - computed| / |computed|, over all heads.
struct KvDifference {
  std::size_t tokens = 0;  // compared
  double worst = 0;
  double mean = 0;           // over tokens, layers, K and V
  std::size_t position = 0;  // of the worst
  std::size_t layer = 0;
  bool in_k = false;

  /// Takes in those of other tokens.
  void add(const KvDifference& other);
};

/// Tokens [begin, end) to be computed again.
struct KvWindow {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// How far KV may be from computed KV and yet be that of the same tokens and
/// model, rounded otherwise.
struct KvTolerance {
  double worst = 0;
  double mean = 0;

  bool allows(const KvDifference& difference) const {
    return difference.worst <= worst && difference.mean <= mean;
  }
};

/// For a file of KV in that type ("F16", "BF16", "F32": also how precisely its
/// writer computes) and a model that computes with a mean difference of
/// `rounding` from exact arithmetic.
KvTolerance kv_tolerance(std::string_view file_type, double rounding);

/// Which tokens of a prompt to check: its first and last ones and windows
/// spread evenly between, or all of a prompt that is short or when `all`.
std::vector<KvWindow> plan_kv_check(std::size_t tokens, bool all);

/// Computes a window's tokens behind the given KV of those before, and
/// compares. Thread: the generation thread.
/// Requires: pages hold the KV of all tokens before the window's end.
/// Errors: the runner's.
Result<KvDifference> compare_kv(
    Runner& runner,
    std::span<const Token> tokens,
    std::span<const PagePtr> pages,
    const KvWindow& window
);

}  // namespace afterglow
