// How requests come to run: their turn, their room, what is known of them.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

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

void Scheduler::admit() {
  std::size_t reading = restoring_.size();
  std::size_t computing = restoring_.size();
  for (const SequencePtr& sequence : running_) {
    reading += sequence->decoding() ? 0 : 1;
    computing += sequence->waiting() ? 0 : 1;  // those take no part in steps
  }
  for (auto next = queue_.begin(); next != queue_.end();) {
    if (computing >= options_.decode_concurrency ||
        reading >= options_.prompt_concurrency) {
      return;
    }
    if (shared_prefix_is_coming(**next)) {
      ++next;
      continue;
    }
    if (!has_room(**next)) {
      if (computing > 0) {
        return;
      }
      (*next)->fail(
          {Code::kExhausted,
           "the prompt and its answer need more memory than the memory limit "
           "leaves"}
      );
      ended(**next);
      next = queue_.erase(next);
      continue;
    }
    SequencePtr sequence = std::move(*next);
    next = queue_.erase(next);
    ++reading;
    ++computing;
    look_up(std::move(sequence));
    start_restored();  // what lay in RAM has been answered already
  }
}

// Whether its KV fits at its longest, idle pages giving way first.
bool Scheduler::has_room(const Sequence& sequence) {
  std::uint64_t page_bytes = runner_.layout().page_bytes();
  std::uint64_t needed = sequence.max_pages() * page_bytes;
  for (const SequencePtr& other : running_) {
    needed += other->max_pages() * page_bytes;
  }
  for (const auto& [id, other] : restoring_) {
    needed += other->max_pages() * page_bytes;
  }
  if (needed > options_.kv_limit_bytes) {
    return false;
  }
  std::uint64_t idle = cache_.stats().ram_bytes;
  if (idle > options_.kv_limit_bytes - needed) {
    std::uint64_t excess = idle - (options_.kv_limit_bytes - needed);
    return cache_.shrink_ram(excess) >= excess;
  }
  return true;
}

// Whether a sequence ahead will soon have pages that this one needs too:
// waiting for them is cheaper than computing, or reading, them again.
bool Scheduler::shared_prefix_is_coming(const Sequence& sequence) const {
  if (!sequence.request().cache_read || sequence.request().history) {
    return false;
  }
  const std::vector<Token>& prompt = sequence.request().prompt;
  auto will_bring = [&](const Sequence& other) {
    if (!other.request().cache_store ||
        other.request().cache_namespace != sequence.request().cache_namespace ||
        other.decoding()) {
      return false;
    }
    const std::size_t shared = shared_prefix(prompt, other.request().prompt);
    return other.prompt_read() < shared / kPageTokens * kPageTokens;
  };
  return std::any_of(
             running_.begin(),
             running_.end(),
             [&](const SequencePtr& other) { return will_bring(*other); }
         ) ||
         std::any_of(
             restoring_.begin(),
             restoring_.end(),
             [&](const auto& other) { return will_bring(*other.second); }
         );
}

void Scheduler::look_up(SequencePtr sequence) {
  const GenerationRequest& request = sequence->request();
  // What the request came with may be all that there is to know.
  if (!request.cache_read ||
      shared_with_history(request) + 1 >= request.prompt.size()) {
    start(std::move(sequence), {});
    return;
  }
  std::optional<BlockId> imported;
  if (request.cache_namespace.empty()) {
    imported = imported_root_;
  }
  Match match = cache_.lookup(sequence->root(), request.prompt, imported);
  if (match.tokens() < options_.min_match_tokens) {
    match = Match();  // nothing to be read from disk for it
  } else {
    sequence->set_root(match.root());
  }
  if (store_ == nullptr) {
    start(std::move(sequence), in_ram(match));
    return;
  }
  RequestId id = sequence->id();
  RestoreRequest restore;
  restore.root = sequence->root();
  restore.prompt = request.prompt;
  restore.match = std::move(match);
  restore.seconds_per_token = pacer_.prefill_seconds_per_token();
  restore.done = [this, id](Restored restored) {
    std::lock_guard lock(mutex_);
    restored_.emplace_back(id, std::move(restored));
    ++signals_;
    wake_.notify_one();
  };
  sequence->mark_restoring();
  restoring_.emplace(id, std::move(sequence));
  store_->restore(std::move(restore));
}

// Goes on from what the cache restored, or from the request's own history
// where that is longer. The last prompt token is always computed: its logits
// are needed.
void Scheduler::start(SequencePtr sequence, const Restored& restored) {
  const GenerationRequest& request = sequence->request();
  const std::size_t most = request.prompt.size() - 1;
  std::size_t reused = std::min(restored.tokens, most);
  if (reused < options_.min_match_tokens) {
    reused = 0;
  }
  const std::size_t given = std::min(shared_with_history(request), most);
  Restored own;
  if (given > reused) {
    own = from_history(*request.history, given);
    reused = given;
    sequence->set_root(
        request.history->origin.spec == options_.spec
            ? root_of(request.cache_namespace)
            : imported_root_
    );
  }
  if (request.return_history) {
    sequence->keep_history(
        {options_.fingerprint,
         sequence->root() == imported_root_ ? foreign_spec(options_.spec)
                                            : options_.spec},
        runner_.layout()
    );
  }
  sequence->begin(runner_, cache_, own.path.empty() ? restored : own, reused);
  unpriced_tokens_ += reused;
  {
    std::lock_guard lock(mutex_);
    const Timings& timings = sequence->timings();
    counters_.ram_prompt_tokens += timings.cache_ram_n;
    counters_.disk_prompt_tokens += timings.cache_disk_n;
    counters_.ram_hits += timings.cache_ram_n > 0 ? 1 : 0;
    counters_.disk_hits += timings.cache_disk_n > 0 ? 1 : 0;
  }
  running_.push_back(std::move(sequence));
}

}  // namespace afterglow
