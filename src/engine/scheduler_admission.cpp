// How requests come to run: their turn, their room, what is known of them.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/human_bytes.h"
#include "engine/scheduler.h"

namespace afterglow {
namespace {

/// What can be used of a match without a store: all that comes before the
/// first block whose page is not there.
Restored in_ram(const Match& match) {
  Restored restored;
  for (const PathBlock& known : match.path()) {
    if (known.page == nullptr) {
      break;
    }
    restored.path.push_back(known);
  }
  restored.tokens =
      std::min(match.tokens(), restored.path.size() * kPageTokens);
  return restored;
}

Restored from_history(const KvHistory& history, std::size_t shared) {
  Restored restored;
  for (std::size_t i = 0; i * kPageTokens < shared; ++i) {
    restored.path.push_back({nullptr, history.pages[i]});
  }
  restored.tokens = shared;
  return restored;
}

}  // namespace

bool Scheduler::has_place() const {
  std::size_t reading = restoring_.size();
  std::size_t computing = restoring_.size();
  for (const SequencePtr& sequence : running_) {
    reading += sequence->decoding() ? 0 : 1;
    computing += sequence->waiting() ? 0 : 1;  // those take no part in steps
  }
  return computing < options_.decode_concurrency &&
         reading < options_.prompt_concurrency;
}

void Scheduler::admit() {
  while (has_place() && choose_next()) {
    if (has_room_for_next()) {
      enter_next();
      start_restored();  // what lay in RAM has been answered already
    } else if (memory_comes_free()) {
      return;
    } else {
      refuse_next();
    }
  }
}

// False: nobody is there who need not wait for another one's prompt.
bool Scheduler::choose_next() {
  if (next_) {
    return true;
  }
  auto running_of = [&](const std::string& client) {
    auto is_his = [&](const SequencePtr& sequence) {
      return sequence->request().client == client;
    };
    return std::count_if(running_.begin(), running_.end(), is_his) +
           std::count_if(
               restoring_.begin(),
               restoring_.end(),
               [&](const auto& entry) { return is_his(entry.second); }
           );
  };
  std::optional<Waiting> waiting =
      queue_.take(running_of, [&](Waiting& one) { return !must_wait(one); });
  if (!waiting) {
    return false;
  }
  next_.emplace(Next{
      std::move(waiting->sequence), std::move(waiting->lent), {}, false});
  const bool done = had_memory(*next_->sequence, [&] {
    borrow_for_next();
    look_up_next();
  });
  if (!done) {
    ended(*next_->sequence);
    next_.reset();
    return choose_next();
  }
  return true;
}

// What is known of its prompt, unless a running one has lent as much.
void Scheduler::look_up_next() {
  Sequence& sequence = *next_->sequence;
  const GenerationRequest& request = sequence.request();
  std::size_t had =
      std::max(next_->lent.restored.tokens, shared_with_history(request));
  // What the request came with may be all that there is to know.
  if (!request.cache_read || had + 1 >= request.prompt.size()) {
    return;
  }
  std::optional<BlockId> imported;
  if (request.cache_namespace.empty()) {
    imported = imported_root_;
  }
  Match match = cache_.lookup(sequence.root(), request.prompt, imported);
  const bool useful = match.tokens() >= options_.min_match_tokens;
  const std::size_t lent = next_->lent.restored.tokens;
  if (lent > 0 && (lent >= match.tokens() || !useful)) {
    return;
  }
  next_->lent = {};
  next_->ask_store = store_ != nullptr;  // it may know blocks of others
  if (useful) {
    next_->match = std::move(match);
    sequence.set_root(next_->match.root());
  }
}

// What those that run may still take beyond the pages there are.
std::uint64_t Scheduler::promised_bytes() const {
  std::uint64_t sum = 0;
  auto add = [&](const Sequence& sequence, std::size_t pages) {
    sum +=
        pages * page_bytes_ + options_.request_bytes + sequence.token_bytes();
  };
  for (const SequencePtr& sequence : running_) {
    std::size_t pages = sequence->pages_to_come();
    if (options_.kv_outside_pool) {
      sum += sequence->kv_bytes();
      if (sequence->request().cache_store) {
        pages += sequence->max_pages() - sequence->prompt_read() / kPageTokens;
      }
    }
    add(*sequence, pages);
  }
  for (const auto& [id, sequence] : restoring_) {
    add(*sequence, sequence->max_pages());
  }
  return sum;
}

// What a request takes at its longest when it shares so many tokens' pages.
std::uint64_t Scheduler::most_bytes(
    const GenerationRequest& request, std::size_t shared
) const {
  const std::size_t prompt = request.prompt.size();
  std::uint64_t pages = pages_for(prompt + request.max_tokens);
  if (options_.kv_outside_pool) {
    pages *= request.cache_store ? 2 : 1;
  } else {
    // What it shares is there already; a page shared in part is copied.
    pages -= std::min(shared, prompt - 1) / kPageTokens;
  }
  return pages * page_bytes_ + options_.request_bytes +
         (2 * prompt + request.max_tokens) * sizeof(Token);
}

std::uint64_t Scheduler::needed_by_next() const {
  return most_bytes(
      next_->sequence->request(),
      std::max(next_->lent.restored.tokens, in_ram(next_->match).tokens)
  );
}

// All pages count, whoever holds them: sequences, entries, the writer, callers.
std::uint64_t Scheduler::taken_by_others() {
  std::uint64_t sum =
      promised_bytes() + runner_.pool().live_pages() * page_bytes_;
  queue_.for_each([&](const Waiting& waiting) {
    sum += waiting.sequence->request().prompt.size() * sizeof(Token);
  });
  return sum;
}

// Whether it fits at its longest, idle pages giving way first.
bool Scheduler::has_room_for_next() {
  const std::uint64_t needed = needed_by_next();
  auto excess = [&] {
    std::uint64_t total = needed + taken_by_others();
    return total - std::min(total, options_.memory_limit_bytes);
  };
  const std::uint64_t too_much = excess();
  // Not for nothing: what is idle is all that may come free.
  if (too_much == 0 || too_much > cache_.stats().ram_bytes) {
    return too_much == 0;
  }
  cache_.shrink_ram(too_much);
  return excess() == 0;
}

// Whether it is worth waiting, or else nothing would ever change.
bool Scheduler::memory_comes_free() const {
  bool computing = std::any_of(
      running_.begin(),
      running_.end(),
      [](const SequencePtr& sequence) { return !sequence->waiting(); }
  );
  return computing || !restoring_.empty() || cache_.dirty_count() > 0;
}

void Scheduler::refuse_next() {
  bool lent = false;
  queue_.for_each([&](Waiting& waiting) {
    lent = lent || waiting.lent.restored.tokens > 0;
    waiting.lent = {};
  });
  if (lent) {
    return;  // looked at once more
  }
  const std::uint64_t taken = taken_by_others();
  const bool pages = runner_.pool().live_pages() > 0;
  next_->sequence->fail(
      {Code::kExhausted,
       "[engine.memory] the prompt and its answer need up to " +
           human_bytes(needed_by_next()) + " of memory, and " +
           (pages ? "cache histories in use, pinned entries and " : "") +
           "prompts that wait leave " +
           human_bytes(
               options_.memory_limit_bytes -
               std::min(options_.memory_limit_bytes, taken)
           ) +
           " of the memory limit; let go of them, or raise it"}
  );
  ended(*next_->sequence);
  next_.reset();
}

void Scheduler::enter_next() {
  Next next = *std::exchange(next_, std::nullopt);
  SequencePtr& sequence = next.sequence;
  if (next.lent.restored.tokens > 0) {
    sequence->set_root(next.lent.root);
    start(sequence, next.lent.restored, 1);
    return;
  }
  if (!next.ask_store) {
    start(sequence, in_ram(next.match), options_.min_match_tokens);
    return;
  }
  sequence->mark_restoring(in_ram(next.match).tokens);
  RequestId id = sequence->id();
  RestoreRequest restore;
  restore.root = sequence->root();
  restore.prompt = sequence->request().prompt;
  restore.match = std::move(next.match);
  restore.seconds_per_token = pacer_.prefill_seconds_per_token();
  restore.done = [this, id](Restored restored) {
    std::lock_guard lock(mutex_);
    restored_.emplace_back(id, std::move(restored));
    ++signals_;
    wake_.notify_one();
  };
  restoring_.emplace(id, std::move(sequence));
  store_->restore(std::move(restore));
}

// Goes on from what the cache restored, or from the request's own history
// where that is longer. The last prompt token is always computed: its logits
// are needed.
// It is not worth while for less than the least.
void Scheduler::begin(
    Sequence& sequence, const Restored& restored, std::size_t least
) {
  const GenerationRequest& request = sequence.request();
  const std::size_t most = request.prompt.size() - 1;
  std::size_t reused = std::min(restored.tokens, most);
  if (reused < least) {
    reused = 0;
  }
  const std::size_t given = std::min(shared_with_history(request), most);
  Restored own;
  if (given > reused) {
    own = from_history(*request.history, given);
    reused = given;
    sequence.set_root(
        request.history->origin.spec == options_.spec
            ? root_of(request.cache_namespace)
            : imported_root_
    );
  }
  if (request.return_history) {
    sequence.keep_history(
        {options_.fingerprint,
         sequence.root() == imported_root_ ? foreign_spec(options_.spec)
                                           : options_.spec},
        runner_.layout()
    );
  }
  sequence.begin(runner_, cache_, own.path.empty() ? restored : own, reused);
  unpriced_tokens_ += reused;
  std::lock_guard lock(mutex_);
  const Timings& timings = sequence.timings();
  counters_.ram_prompt_tokens += timings.cache_ram_n;
  counters_.disk_prompt_tokens += timings.cache_disk_n;
  counters_.ram_hits += timings.cache_ram_n > 0 ? 1 : 0;
  counters_.disk_hits += timings.cache_disk_n > 0 ? 1 : 0;
}

void Scheduler::start(
    const SequencePtr& sequence, const Restored& restored, std::size_t least
) {
  const bool began = had_memory(*sequence, [&] {
    begin(*sequence, restored, least);
    running_.push_back(sequence);
  });
  if (!began) {
    ended(*sequence);
  }
}

}  // namespace afterglow
