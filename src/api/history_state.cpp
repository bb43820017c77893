#include "api/history_state.h"

#include "api/raise.h"

namespace afterglow {
namespace {

/// The first tokens of a history, sharing its pages.
KvHistoryPtr shortened(const KvHistoryPtr& history, std::size_t length) {
  if (length >= history->tokens.size()) return history;
  KvHistory part = *history;
  part.tokens.resize(length);
  part.pages.resize(pages_for(length));
  return std::make_shared<const KvHistory>(std::move(part));
}

}  // namespace

HistoryState::HistoryState(const KvHistoryPtr& history, std::size_t length)
    : history_(shortened(history, length)), length_(length) {}

KvHistoryPtr HistoryState::get() const {
  const std::lock_guard lock(mutex_);
  if (generation_) {
    KvHistoryPtr all = generation_->history();
    if (!all) {
      raise(
          {Code::kUnavailable,
           "[cache.history] the generation ended before it had begun"}
      );
    }
    history_ = shortened(all, length_);
    generation_.reset();
  }
  return history_;
}

}  // namespace afterglow
