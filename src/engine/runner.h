#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>

#include "base/kv_layout.h"
#include "base/page.h"
#include "base/result.h"
#include "base/token.h"
#include "ops/ops.h"

namespace afterglow {

/// One sequence's part of a step: tokens that continue its KV, and, when
/// logits is not empty, the logits behind the last of them.
struct StepItem {
  KvState* kv = nullptr;
  std::span<const Token> tokens;
  std::span<float> logits;  // empty, or [vocab_size]
};

/// What the scheduler sees of a model. A fake with next token = hash of all
/// tokens drives its tests.
/// Thread: the generation thread.
class Runner {
 public:
  virtual ~Runner() = default;

  virtual const KvLayout& layout() const = 0;
  virtual std::size_t vocab_size() const = 0;
  virtual std::size_t context_length() const = 0;

  /// Where its sequences' pages come from, and restored ones must.
  virtual PagePool& pool() = 0;
  virtual std::unique_ptr<KvState> new_kv() = 0;

  /// Computes all items as one ragged batch. On success each kv has grown by
  /// its tokens; on failure, or when cancelled, each is as before.
  /// Errors: kCancelled; kExhausted when the system has no memory left;
  /// kInternal, also when a logit is not finite.
  virtual Status step(
      std::span<const StepItem> items, const std::atomic<bool>& cancel
  ) = 0;
};

}  // namespace afterglow
