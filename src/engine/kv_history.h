#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/kv_layout.h"
#include "base/page.h"
#include "base/result.h"
#include "base/token.h"

namespace afterglow {

/// What a computation of KV belongs to.
struct KvOrigin {
  Sha256Digest fingerprint{};  // the model; all zero: not known
  Sha256Digest spec{};         // its arithmetic, or foreign_spec of it
};

/// Tokens and their KV, independent of any sequence: what a request may give
/// and take. The layout's types may be another model's until it is adopted.
struct KvHistory {
  KvOrigin origin;
  KvLayout layout;
  std::vector<Token> tokens;  // kUnknownToken where nobody said which
  std::vector<PagePtr> pages;
};

using KvHistoryPtr = std::shared_ptr<const KvHistory>;

/// Names KV that a model works with but did not compute to the bit, having
/// begun with a file of mlx_lm.
Sha256Digest foreign_spec(const Sha256Digest& spec);

/// Tokens at the start of a history of which only the KV is known.
std::size_t unknown_tokens(std::span<const Token> tokens);

/// The history in the form that a model's sequences take: the same one when
/// its types are the model's, else with KV converted.
/// Errors: kInvalidArgument, saying whether model, arithmetic or sizes differ;
/// kCorrupt for values that do not fit the model's type.
Result<KvHistoryPtr> adopt_history(
    const KvHistoryPtr& history,
    const KvOrigin& model,
    const KvLayout& layout,
    PagePool& pool
);

}  // namespace afterglow
