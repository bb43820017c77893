// Who begins with whose KV. A prompt that a running sequence is reading, too,
// is not read twice: one waits for the other and takes its pages over.

#include <algorithm>
#include <utility>

#include "engine/scheduler.h"

namespace afterglow {

// How many tokens two must have in common for one to begin with the other's
// KV; none: never. Few are sooner computed than taken over.
std::optional<std::size_t> Scheduler::least_shared(
    const Sequence& from, const Sequence& to
) const {
  const GenerationRequest& lender = from.request();
  const GenerationRequest& borrower = to.request();
  if (borrower.history || from.cancelled()) {
    return std::nullopt;
  }
  if (borrower.share_group && borrower.share_group == lender.share_group) {
    return 1;
  }
  // Beginnings that were imported are known to the empty namespace alone.
  if (borrower.cache_read && lender.cache_store &&
      borrower.cache_namespace == lender.cache_namespace &&
      (borrower.cache_namespace.empty() || from.root() != imported_root_)) {
    return options_.min_match_tokens;
  }
  return std::nullopt;
}

// The last token of a prompt is computed in any case: its logits are needed.
std::size_t Scheduler::shared_tokens(const Sequence& from, const Sequence& to) {
  const std::vector<Token>& prompt = to.request().prompt;
  return std::min(
      shared_prefix(prompt, from.request().prompt), prompt.size() - 1
  );
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
  waiting.awaited_tokens = 0;
  const Sequence& sequence = *waiting.sequence;
  struct Reader {
    RequestId id;
    std::size_t shared, least;
  };
  std::vector<Reader> readers;
  std::size_t there = waiting.lent.restored.tokens;
  auto look_at = [&](const Sequence& other) {
    std::optional<std::size_t> least = least_shared(other, sequence);
    if (!least) {
      return;
    }
    std::size_t shared = shared_tokens(other, sequence);
    // One that waits for the disk holds fast what the cache has of it.
    const bool cached =
        restoring_.contains(other.id()) && sequence.request().cache_read;
    there = std::max(
        there, std::min(shared, cached ? other.in_ram() : other.prompt_read())
    );
    // One that does not read the cache may compute what lies there.
    if (other.prompt_read() < shared &&
        (other.request().cache_read || !sequence.request().cache_read)) {
      readers.push_back({other.id(), shared, *least});
    }
  };
  for (const SequencePtr& other : running_) {
    look_at(*other);
  }
  for (const auto& [id, other] : restoring_) {
    look_at(*other);
  }
  for (const Reader& reader : readers) {
    if (reader.shared >=
        std::max(there + reader.least, waiting.awaited_tokens)) {
      waiting.awaits = reader.id;
      waiting.awaited_tokens = reader.shared;
    }
  }
  return waiting.awaits.has_value();
}

// From the sequence that has most of what the next one needs.
void Scheduler::borrow_for_next() {
  std::size_t most = next_->lent.restored.tokens;
  Sequence* from = nullptr;
  for (const SequencePtr& other : running_) {
    std::optional<std::size_t> least = least_shared(*other, *next_->sequence);
    std::size_t shared =
        std::min(shared_tokens(*other, *next_->sequence), other->prompt_read());
    if (least && shared >= *least && shared > most) {
      most = shared;
      from = other.get();
    }
  }
  if (from != nullptr) {
    next_->lent = from->lend(most);
  }
}

// At once: it may end with this very step. To the rest of its group, too,
// which may have found no place while it ran.
void Scheduler::lend_to_waiting(Sequence& sequence) {
  auto in_group = [&](const Waiting& waiting) {
    const GenerationRequest& request = waiting.sequence->request();
    return !waiting.awaits && waiting.lent.restored.tokens == 0 &&
           request.share_group && !request.history &&
           request.share_group == sequence.request().share_group;
  };
  queue_.for_each([&](Waiting& waiting) {
    std::size_t tokens = 0;
    if (waiting.awaits == sequence.id()) {
      tokens = waiting.awaited_tokens;
    } else if (in_group(waiting)) {
      tokens = shared_tokens(sequence, *waiting.sequence);
    }
    if (tokens > 0 && sequence.prompt_read() >= tokens) {
      waiting.awaits.reset();
      waiting.lent = sequence.lend(tokens);
    }
  });
}

// Who waits for another one's tokens is told how many of them there are.
void Scheduler::tell_waiting() {
  auto could_not = [this](Sequence& sequence, std::size_t read) {
    const bool told = had_memory(sequence, [&] {
      sequence.tell_waits(read, options_.waits_in_silence);
    });
    if (!told) {
      ended(sequence);
    }
    return !told;
  };
  queue_.erase_if([&](const Waiting& waiting) {
    std::size_t read = waiting.lent.restored.tokens;
    if (SequencePtr reader =
            waiting.awaits ? find_running(*waiting.awaits) : nullptr) {
      read = std::min(reader->prompt_read(), waiting.awaited_tokens);
    }
    return could_not(*waiting.sequence, read);
  });
  if (next_ && could_not(*next_->sequence, next_->lent.restored.tokens)) {
    next_.reset();
  }
}

}  // namespace afterglow
