// Who begins with whose KV. A prompt that a running sequence is reading, too,
// is not read twice: one waits for the other and takes its pages over.

#include <algorithm>
#include <utility>

#include "engine/scheduler.h"

namespace afterglow {

bool Scheduler::may_share(const Sequence& from, const Sequence& to) const {
  const GenerationRequest& lender = from.request();
  const GenerationRequest& borrower = to.request();
  if (borrower.history || from.cancelled()) {
    return false;
  }
  if (borrower.share_group && borrower.share_group == lender.share_group) {
    return true;
  }
  // Beginnings that were imported are known to the empty namespace alone.
  return borrower.cache_read && lender.cache_store &&
         borrower.cache_namespace == lender.cache_namespace &&
         (borrower.cache_namespace.empty() || from.root() != imported_root_);
}

// Fewer tokens are sooner computed than taken over.
std::size_t Scheduler::least_shared(const Sequence& sequence) const {
  return sequence.request().share_group ? 1 : options_.min_match_tokens;
}

// Whether it will still get so many tokens of its prompt.
bool Scheduler::is_reading(RequestId id, std::size_t tokens) const {
  if (restoring_.contains(id)) {
    return !restoring_.at(id)->cancelled();
  }
  SequencePtr sequence = find_running(id);
  return sequence && !sequence->cancelled() && sequence->prompt_read() < tokens;
}

// Whether a sequence ahead will soon have KV that this one needs, too: more
// than it can take over now, from that one or the cache.
bool Scheduler::must_wait(Waiting& waiting) const {
  if (waiting.awaits && is_reading(*waiting.awaits, waiting.awaited_tokens)) {
    return true;
  }
  waiting.awaits.reset();
  const Sequence& sequence = *waiting.sequence;
  const std::vector<Token>& prompt = sequence.request().prompt;
  std::size_t there = waiting.lent.restored.tokens;
  std::optional<RequestId> best;
  std::size_t most = 0;
  auto look_at = [&](const Sequence& other) {
    if (!may_share(other, sequence)) {
      return;
    }
    // The last token is computed in any case: its logits are needed.
    std::size_t shared = std::min(
        shared_prefix(prompt, other.request().prompt), prompt.size() - 1
    );
    there = std::max(there, std::min(shared, other.prompt_read()));
    // One that does not read the cache may compute what lies there.
    bool worth_waiting =
        other.request().cache_read || sequence.request().share_group;
    if (worth_waiting && shared > most && other.prompt_read() < shared) {
      most = shared;
      best = other.id();
    }
  };
  for (const SequencePtr& other : running_) {
    look_at(*other);
  }
  for (const auto& [id, other] : restoring_) {
    look_at(*other);
  }
  if (most < there + least_shared(sequence)) {
    return false;
  }
  waiting.awaits = best;
  waiting.awaited_tokens = most;
  return true;
}

// From the sequence that has most of what the next one needs.
void Scheduler::borrow_for_next() {
  const std::vector<Token>& prompt = next_->sequence->request().prompt;
  std::size_t most = next_->lent.restored.tokens;
  Sequence* from = nullptr;
  for (const SequencePtr& other : running_) {
    if (!may_share(*other, *next_->sequence)) {
      continue;
    }
    std::size_t shared = std::min(
        {shared_prefix(prompt, other->request().prompt),
         other->prompt_read(),
         prompt.size() - 1}
    );
    if (shared > most && shared >= least_shared(*next_->sequence)) {
      most = shared;
      from = other.get();
    }
  }
  if (from != nullptr) {
    next_->lent = from->lend(most);
  }
}

// At once: it may end with this very step.
void Scheduler::lend_to_waiting(Sequence& sequence) {
  queue_.for_each([&](Waiting& waiting) {
    if (waiting.awaits == sequence.id() &&
        sequence.prompt_read() >= waiting.awaited_tokens) {
      waiting.awaits.reset();
      waiting.lent = sequence.lend(waiting.awaited_tokens);
    }
  });
}

}  // namespace afterglow
