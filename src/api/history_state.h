#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

#include "api/generation.h"
#include "engine/kv_history.h"

namespace afterglow {

/// The first `length` tokens of a history, or of a generation that is asked
/// for it when someone looks.
/// Thread: safe from any thread.
class HistoryState {
 public:
  HistoryState(const KvHistoryPtr& history, std::size_t length);
  HistoryState(std::shared_ptr<Generation> generation, std::size_t length)
      : generation_(std::move(generation)), length_(length) {}

  /// No longer than asked for. Throws: kUnavailable when the generation
  /// failed or has not begun.
  KvHistoryPtr get() const;

 private:
  mutable std::mutex mutex_;
  // Guarded by mutex_; one of the two is set:
  mutable KvHistoryPtr history_;
  mutable std::shared_ptr<Generation> generation_;
  const std::size_t length_;
};

}  // namespace afterglow
