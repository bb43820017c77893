#include "engine/scheduler.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "base/check.h"
#include "base/human_bytes.h"
#include "engine/run_there.h"

namespace afterglow {
Scheduler::Scheduler(
    Runner& runner, PromptCache& cache, Store* store, SchedulerOptions options
)
    : runner_(runner),
      vocab_size_(runner.vocab_size()),
      context_length_(runner.context_length()),
      page_bytes_(runner.layout().page_bytes()),
      cache_(cache),
      store_(store),
      options_(options),
      imported_root_(root_of(std::string(kImportedNamespace))),
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
        "the prompt leaves no room for an answer in the model's context of " +
            std::to_string(context_length_) + " tokens"};
  }
  if (request.max_tokens == 0) {
    return Error{Code::kInvalidArgument, "max_tokens must be at least 1"};
  }
  return validate(request.sampling, vocab_size_);
}

// What could not even run alone is refused before anybody waits for it.
Status Scheduler::check_memory(const GenerationRequest& request) const {
  std::uint64_t needed = most_bytes(request, 0);
  if (needed <= options_.memory_limit_bytes) {
    return {};
  }
  return Error{
      Code::kExhausted,
      "[engine.submit] a prompt of " + std::to_string(request.prompt.size()) +
          " tokens and an answer of up to " +
          std::to_string(request.max_tokens) + " need " + human_bytes(needed) +
          " of memory, and the memory limit leaves " +
          human_bytes(options_.memory_limit_bytes) +
          "; shorten them, or raise the limit"};
}

// Requires: mutex_ is held.
Status Scheduler::check_place(const std::string& client) const {
  const std::size_t places = options_.queue_limit + options_.decode_concurrency;
  auto refused = [](std::size_t count, const std::string& whose) {
    return Error{
        Code::kOverloaded,
        std::to_string(count) + whose +
            " requests are running or waiting; try again later"};
  };
  if (live_.size() >= places) {
    return refused(live_.size(), "");
  }
  auto own = static_cast<std::size_t>(std::count_if(
      live_.begin(),
      live_.end(),
      [&](const auto& entry) {
        return entry.second->request().client == client;
      }
  ));
  if (!client.empty() && own >= places - places / 4) {
    return refused(own, " of this client's");
  }
  return {};
}

Result<RequestId> Scheduler::submit(GenerationRequest request) {
  CHECK(request.sink != nullptr);
  if (Status checked = check(request); !checked.ok()) {
    return checked.error();
  }
  request.max_tokens =
      std::min(request.max_tokens, context_length_ - request.prompt.size());
  if (Status fits = check_memory(request); !fits.ok()) {
    return fits.error();
  }
  std::lock_guard lock(mutex_);
  if (!death_.empty()) {
    return Error{Code::kUnavailable, "[engine.submit] " + death_};
  }
  if (closed_) {
    return Error{Code::kUnavailable, "the server is shutting down"};
  }
  if (Status place = check_place(request.client); !place.ok()) {
    return place.error();
  }
  if (live_.empty()) {
    last_end_ = Clock::now();  // idle time says nothing of how long ends take
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
  return run_there<KvHistoryPtr>(
             [this](auto task) { return post(std::move(task)); },
             [this, id](Runner&) {
               SequencePtr sequence = find_running(id);
               return sequence ? sequence->history() : nullptr;
             }
  ).value_or(nullptr);
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

Status Scheduler::health() const {
  std::lock_guard lock(mutex_);
  if (!death_.empty()) {
    return Error{Code::kUnavailable, "[engine.health] " + death_};
  }
  if (round_began_ != Clock::time_point{}) {
    auto so_far = std::chrono::duration_cast<std::chrono::seconds>(
        Clock::now() - round_began_
    );
    if (so_far >= options_.longest_step) {
      return Error{
          Code::kUnavailable,
          "[engine.health] a step has been running for " +
              std::to_string(so_far.count()) +
              " seconds; the server is to be started anew"};
    }
  }
  return {};
}

// Requests end one by one, and each end is a place for another. What has
// taken long so far may well take as long again.
std::chrono::seconds Scheduler::retry_after() const {
  std::lock_guard lock(mutex_);
  double wait = seconds_between_ends_;
  if (!live_.empty()) {
    std::chrono::duration<double> since = Clock::now() - last_end_;
    wait = std::max(wait, since.count());
  }
  constexpr double kMost = 600;
  return std::chrono::seconds(
      static_cast<int>(std::ceil(std::clamp(wait, 1.0, kMost)))
  );
}

EngineCounters Scheduler::counters() const {
  std::lock_guard lock(mutex_);
  return counters_;
}

void Scheduler::run() {
  try {
    while (take_inbox()) {
      end_cancelled();
      take_choices();
      start_restored();
      admit();
      tell_waiting();
      publish_load();
      if (any_ready()) {
        step();
      }
    }
    end_all();
  } catch (const std::exception& error) {
    die(error.what());
  }
}

// What threw may have left anything behind, so nothing of it is kept. All are
// told, now and later: nobody waits for a thread that is no more. It may be
// for want of memory that this is called, so nothing here relies on any.
void Scheduler::die(const char* why) {
  std::vector<std::function<void(Runner&)>> tasks;
  {
    std::lock_guard lock(mutex_);
    death_ = "out of memory";  // short enough to need none
    try {
      death_ = std::string("the generation thread has ended: ") + why;
    } catch (const std::bad_alloc&) {
      // It stays with the short one.
    }
    closed_ = true;
    stopping_ = true;
    round_began_ = {};
    in_step_.clear();
    tasks.swap(tasks_);
    arrived_.clear();
  }
  spdlog::critical("[engine.run] {}", death_);
  auto any_left = [this] {
    std::lock_guard lock(mutex_);
    return live_.empty() ? nullptr : live_.begin()->second;
  };
  while (SequencePtr sequence = any_left()) {
    try {
      sequence->abandon({Code::kInternal, "[engine.run] " + death_});
    } catch (const std::exception& error) {
      spdlog::error(
          "[engine.run] request id={} could not be told: {}",
          sequence->id(),
          error.what()
      );
    }
    ended(*sequence);
  }
  queue_.erase_if([](const Waiting&) { return true; });
  next_.reset();
  restoring_.clear();
  running_.clear();
  publish_load();
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
    round_began_ = {};
    auto has_work = [&] { return any_ready() || signals_ != seen_signals_; };
    if (next_) {
      // It waits for memory, which the writer or a caller may let go of.
      wake_.wait_for(lock, std::chrono::milliseconds(20), has_work);
    } else {
      wake_.wait(lock, has_work);
    }
    round_began_ = Clock::now();
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
  for (SequencePtr& sequence : arrived) {
    std::string client = sequence->request().client;
    queue_.push(client, {std::move(sequence), {}, 0, {}});
  }
  return true;
}

Scheduler::SequencePtr Scheduler::find_running(RequestId id) const {
  auto found = std::find_if(
      running_.begin(),
      running_.end(),
      [id](const SequencePtr& sequence) { return sequence->id() == id; }
  );
  return found == running_.end() ? nullptr : *found;
}

void Scheduler::take_choices() {
  std::vector<std::pair<RequestId, TokenOut>> chosen;
  {
    std::lock_guard lock(mutex_);
    chosen.swap(chosen_);
  }
  for (auto& [id, token] : chosen) {
    SequencePtr sequence = find_running(id);
    if (sequence == nullptr || !sequence->waiting()) {
      continue;  // it has ended
    }
    Timings before = sequence->timings();
    bool over = true;
    had_memory(*sequence, [&, &chosen = token] {
      over = sequence->accept(std::move(chosen));
    });
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
      start(sequence, blocks, options_.min_match_tokens);
    }
  }
}

void Scheduler::end_cancelled() {
  auto end_if_cancelled = [&](const SequencePtr& sequence) {
    if (!sequence->cancelled()) {
      return false;
    }
    had_memory(*sequence, [&] { sequence->finish(sequence->cancel_reason()); });
    ended(*sequence);
    return true;
  };
  queue_.erase_if([&](const Waiting& waiting) {
    return end_if_cancelled(waiting.sequence);
  });
  if (next_ && end_if_cancelled(next_->sequence)) {
    next_.reset();
  }
  std::erase_if(restoring_, [&](const auto& entry) {
    return end_if_cancelled(entry.second);
  });
  std::erase_if(running_, end_if_cancelled);
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
  auto now = Clock::now();
  count_times(sequence, now);
  std::chrono::duration<double> between = now - last_end_;
  double& mean = seconds_between_ends_;
  mean = mean == 0 ? between.count() : 0.75 * mean + 0.25 * between.count();
  last_end_ = now;
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
  queue_.erase_if([](const Waiting&) { return true; });
  next_.reset();
  restoring_.clear();
  running_.clear();
  publish_load();
}

void Scheduler::publish_load() {
  running_count_.store(running_.size() + restoring_.size());
}

}  // namespace afterglow
