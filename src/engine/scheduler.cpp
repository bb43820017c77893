#include "engine/scheduler.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <future>
#include <iterator>
#include <span>
#include <string>

#include "base/check.h"

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

/// How many tokens a request can take of the history it came with.
std::size_t shared_with_history(const GenerationRequest& request) {
  if (request.history == nullptr) {
    return 0;
  }
  const std::vector<Token>& known = request.history->tokens;
  auto end = std::mismatch(
      request.prompt.begin(), request.prompt.end(), known.begin(), known.end()
  );
  return static_cast<std::size_t>(end.first - request.prompt.begin());
}

}  // namespace

Scheduler::Scheduler(
    Runner& runner, PromptCache& cache, Store* store, SchedulerOptions options
)
    : runner_(runner),
      vocab_size_(runner.vocab_size()),
      context_length_(runner.context_length()),
      cache_(cache),
      store_(store),
      options_(options),
      pacer_(options.pacing) {}

Status Scheduler::check(const GenerationRequest& request) const {
  if (request.prompt.empty()) {
    return Error{Code::kInvalidArgument, "the prompt is empty"};
  }
  std::span<const Token> prompt = request.prompt;
  std::size_t unknown =
      request.history ? unknown_tokens(request.history->tokens) : 0;
  if (unknown > 0) {
    if (unknown > shared_with_history(request)) {
      return Error{
          Code::kInvalidArgument,
          "the cache history does not say which tokens it holds, so the "
          "prompt must begin with all of them"};
    }
    if (unknown == prompt.size()) {
      return Error{
          Code::kInvalidArgument, "nothing follows the cache history's tokens"};
    }
    prompt = prompt.subspan(unknown);
  }
  for (Token token : prompt) {
    if (token < 0 || static_cast<std::size_t>(token) >= vocab_size_) {
      return Error{
          Code::kInvalidArgument,
          "the prompt has token " + std::to_string(token) +
              ", but the vocabulary has " + std::to_string(vocab_size_)};
    }
  }
  if (request.prompt.size() >= context_length_) {
    return Error{
        Code::kInvalidArgument,
        "the prompt has " + std::to_string(request.prompt.size()) +
            " tokens, which leaves no room in the model's context of " +
            std::to_string(context_length_)};
  }
  if (request.max_tokens == 0) {
    return Error{Code::kInvalidArgument, "max_tokens must be at least 1"};
  }
  return validate(request.sampling, vocab_size_);
}

Result<RequestId> Scheduler::submit(GenerationRequest request) {
  CHECK(request.sink != nullptr);
  if (Status checked = check(request); !checked.ok()) {
    return checked.error();
  }
  request.max_tokens =
      std::min(request.max_tokens, context_length_ - request.prompt.size());
  std::lock_guard lock(mutex_);
  if (closed_) {
    return Error{Code::kUnavailable, "the server is shutting down"};
  }
  if (live_.size() >= options_.queue_limit + options_.decode_concurrency) {
    return Error{
        Code::kOverloaded,
        std::to_string(live_.size()) +
            " requests are running or waiting; try again later"};
  }
  RequestId id = ++last_id_;
  BlockId root = root_of(request.cache_namespace);
  auto sequence = std::make_shared<Sequence>(id, std::move(request), root);
  live_.emplace(id, sequence);
  arrived_.push_back(std::move(sequence));
  ++signals_;
  wake_.notify_one();
  return id;
}

void Scheduler::choose(RequestId id, TokenOut token) {
  std::lock_guard lock(mutex_);
  chosen_.emplace_back(id, std::move(token));
  ++signals_;
  wake_.notify_one();
}

KvHistoryPtr Scheduler::history(RequestId id) {
  auto promise = std::make_shared<std::promise<KvHistoryPtr>>();
  std::future<KvHistoryPtr> history = promise->get_future();
  bool posted = post([this, id, promise](Runner&) {
    auto found = std::find_if(
        running_.begin(),
        running_.end(),
        [&](const SequencePtr& sequence) { return sequence->id() == id; }
    );
    promise->set_value(found == running_.end() ? nullptr : (*found)->history());
  });
  promise.reset();  // so that a task that is never run breaks the promise
  if (!posted) {
    return nullptr;
  }
  try {
    return history.get();
  } catch (const std::future_error&) {
    return nullptr;  // the engine stopped first
  }
}

bool Scheduler::post(std::function<void(Runner&)> task) {
  std::lock_guard lock(mutex_);
  if (stopping_) {
    return false;
  }
  tasks_.push_back(std::move(task));
  ++signals_;
  wake_.notify_one();
  return true;
}

BlockId Scheduler::root_of(const std::string& cache_namespace) const {
  return root_id(options_.fingerprint, options_.spec, cache_namespace);
}

void Scheduler::cancel(RequestId id, FinishReason reason) {
  std::lock_guard lock(mutex_);
  auto found = live_.find(id);
  if (found == live_.end()) {
    return;
  }
  found->second->cancel(reason);
  bool nobody_waits = std::all_of(
      in_step_.begin(),
      in_step_.end(),
      [](const SequencePtr& sequence) { return sequence->cancelled(); }
  );
  if (nobody_waits) {
    cancel_step_.store(true);
  }
  ++signals_;
  wake_.notify_one();
}

void Scheduler::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
}

bool Scheduler::wait_idle(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return idle_.wait_until(lock, deadline, [&] { return live_.empty(); });
}

void Scheduler::stop() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  stopping_ = true;
  cancel_step_.store(true);
  ++signals_;
  wake_.notify_one();
}

Scheduler::Load Scheduler::load() const {
  std::lock_guard lock(mutex_);
  std::size_t running = std::min(running_count_.load(), live_.size());
  return {running, live_.size() - running};
}

EngineCounters Scheduler::counters() const {
  std::lock_guard lock(mutex_);
  return counters_;
}

void Scheduler::run() {
  while (take_inbox()) {
    end_cancelled();
    take_choices();
    start_restored();
    admit();
    publish_load();
    if (any_ready()) {
      step();
    }
  }
  end_all();
}

bool Scheduler::any_ready() const {
  return std::any_of(
      running_.begin(),
      running_.end(),
      [](const SequencePtr& sequence) { return !sequence->waiting(); }
  );
}

// Waits for work unless sequences have some. False: stop.
bool Scheduler::take_inbox() {
  std::vector<SequencePtr> arrived;
  std::vector<std::function<void(Runner&)>> tasks;
  {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return any_ready() || signals_ != seen_signals_; });
    seen_signals_ = signals_;
    if (stopping_) {
      return false;
    }
    arrived.swap(arrived_);
    tasks.swap(tasks_);
  }
  for (auto& task : tasks) {
    task(runner_);
    task = nullptr;
  }
  queue_.insert(queue_.end(), arrived.begin(), arrived.end());
  return true;
}

void Scheduler::take_choices() {
  std::vector<std::pair<RequestId, TokenOut>> chosen;
  {
    std::lock_guard lock(mutex_);
    chosen.swap(chosen_);
  }
  for (auto& [id, token] : chosen) {
    auto found = std::find_if(
        running_.begin(),
        running_.end(),
        [id = id](const SequencePtr& sequence) { return sequence->id() == id; }
    );
    if (found == running_.end() || !(*found)->waiting()) {
      continue;  // it has ended
    }
    SequencePtr sequence = *found;
    Timings before = sequence->timings();
    bool over = sequence->accept(std::move(token));
    count(before, sequence->timings());
    if (over) {
      drop(sequence);
    }
  }
}

void Scheduler::start_restored() {
  std::vector<std::pair<RequestId, Restored>> restored;
  {
    std::lock_guard lock(mutex_);
    restored.swap(restored_);
  }
  for (auto& [id, blocks] : restored) {
    auto found = restoring_.find(id);
    if (found != restoring_.end()) {
      SequencePtr sequence = std::move(found->second);
      restoring_.erase(found);
      start(std::move(sequence), blocks);
    }
  }
}

void Scheduler::end_cancelled() {
  auto end_if_cancelled = [&](const SequencePtr& sequence) {
    if (!sequence->cancelled()) {
      return false;
    }
    sequence->finish(sequence->cancel_reason());
    ended(*sequence);
    return true;
  };
  std::erase_if(queue_, end_if_cancelled);
  std::erase_if(restoring_, [&](const auto& entry) {
    return end_if_cancelled(entry.second);
  });
  std::erase_if(running_, end_if_cancelled);
}

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
    const std::vector<Token>& ahead = other.request().prompt;
    auto shared = static_cast<std::size_t>(
        std::mismatch(prompt.begin(), prompt.end(), ahead.begin(), ahead.end())
            .first -
        prompt.begin()
    );
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
    imported = root_of(std::string(kImportedNamespace));
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
    const bool foreign = request.history->origin.spec != options_.spec;
    sequence->set_root(root_of(
        foreign ? std::string(kImportedNamespace) : request.cache_namespace
    ));
  }
  if (sequence->request().return_history) {
    bool own = sequence->root() != root_of(std::string(kImportedNamespace));
    sequence->keep_history(
        {options_.fingerprint,
         own ? options_.spec : foreign_spec(options_.spec)},
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

std::vector<StepItem> Scheduler::next_items(
    const std::vector<SequencePtr>& batch
) {
  auto reading = static_cast<std::size_t>(std::count_if(
      batch.begin(),
      batch.end(),
      [](const SequencePtr& sequence) { return !sequence->decoding(); }
  ));
  std::size_t share =
      reading == 0 ? 0 : std::max<std::size_t>(1, pacer_.budget() / reading);
  std::vector<StepItem> items;
  for (const SequencePtr& sequence : batch) {
    items.push_back(sequence->next(share));
  }
  return items;
}

void Scheduler::step() {
  std::vector<SequencePtr> batch;
  std::copy_if(
      running_.begin(),
      running_.end(),
      std::back_inserter(batch),
      [](const SequencePtr& sequence) { return !sequence->waiting(); }
  );
  std::vector<StepItem> items = next_items(batch);
  std::size_t tokens = 0;
  std::size_t prompt_tokens = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    tokens += items[i].tokens.size();
    prompt_tokens += batch[i]->prompt_tokens_in(items[i]);
  }
  {
    std::lock_guard lock(mutex_);
    in_step_ = batch;
    cancel_step_.store(stopping_);
  }
  auto began = std::chrono::steady_clock::now();
  Status status = runner_.step(items, cancel_step_);
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  {
    std::lock_guard lock(mutex_);
    in_step_.clear();
  }
  if (status.ok()) {
    measure(tokens, prompt_tokens, took.count());
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (advance(*batch[i], items[i])) {
        drop(batch[i]);
      }
    }
  } else if (status.error().code != Code::kCancelled) {
    rerun_alone(batch, status.error());
  }
}

void Scheduler::measure(
    std::size_t tokens, std::size_t prompt_tokens, double seconds
) {
  pacer_.record(tokens, prompt_tokens, seconds);
  double price = pacer_.prefill_seconds_per_token();
  if (price > 0) {
    std::lock_guard lock(mutex_);
    counters_.prefill_seconds_per_token = price;
    counters_.prefill_seconds_saved +=
        price * static_cast<double>(std::exchange(unpriced_tokens_, 0));
  }
}

bool Scheduler::advance(Sequence& sequence, const StepItem& item) {
  Timings before = sequence.timings();
  bool over = sequence.advance(item);
  count(before, sequence.timings());
  return over;
}

void Scheduler::count(const Timings& before, const Timings& after) {
  std::lock_guard lock(mutex_);
  counters_.computed_prompt_tokens += after.prompt_n - before.prompt_n;
  counters_.generated_tokens += after.predicted_n - before.predicted_n;
}

// A failed step has left every sequence as it was. One that fails alone too
// is the cause; the others go on.
void Scheduler::rerun_alone(
    const std::vector<SequencePtr>& batch, const Error& error
) {
  for (const SequencePtr& sequence : batch) {
    Status status = error;
    StepItem item = sequence->next(options_.pacing.min_tokens);
    if (batch.size() > 1) {
      status = runner_.step(std::span(&item, 1), cancel_step_);
    }
    if (status.ok()) {
      if (advance(*sequence, item)) {
        drop(sequence);
      }
    } else if (status.error().code != Code::kCancelled) {
      sequence->fail(status.error());
      drop(sequence);
    }
  }
}

// It has ended.
void Scheduler::drop(const SequencePtr& sequence) {
  ended(*sequence);
  std::erase(running_, sequence);
}

void Scheduler::ended(const Sequence& sequence) {
  if (sequence.recomputed() > 0) {
    spdlog::warn(
        "[engine.prompt] request id={}: {} tokens of its prompt were restored "
        "and yet computed again",
        sequence.request().label.empty() ? std::to_string(sequence.id())
                                         : sequence.request().label,
        sequence.recomputed()
    );
  }
  std::lock_guard lock(mutex_);
  if (auto reason = sequence.reason()) {
    ++counters_.finished[static_cast<std::size_t>(*reason)];
  } else {
    ++counters_.failed;
  }
  counters_.recomputed_requests += sequence.recomputed() > 0 ? 1 : 0;
  counters_.recomputed_tokens += sequence.recomputed();
  live_.erase(sequence.id());
  ++signals_;  // its place is free for one that waits
  if (live_.empty()) {
    idle_.notify_all();
  }
}

void Scheduler::end_all() {
  std::vector<SequencePtr> left;
  std::vector<std::function<void(Runner&)>> tasks;
  {
    std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
    for (const auto& [id, sequence] : live_) {
      left.push_back(sequence);
    }
    arrived_.clear();
  }
  for (const SequencePtr& sequence : left) {
    sequence->finish(FinishReason::kCancelled);
    ended(*sequence);
  }
  queue_.clear();
  restoring_.clear();
  running_.clear();
  publish_load();
}

void Scheduler::publish_load() {
  running_count_.store(running_.size() + restoring_.size());
}

}  // namespace afterglow
