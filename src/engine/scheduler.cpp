#include "engine/scheduler.h"

#include <algorithm>
#include <string>

#include "base/check.h"

namespace afterglow {

Scheduler::Scheduler(
    Runner& runner, PromptCache& cache, Store* store, SchedulerOptions options
)
    : runner_(runner),
      cache_(cache),
      store_(store),
      options_(options),
      pacer_(options.pacing) {}

Status Scheduler::check(const GenerationRequest& request) const {
  if (request.prompt.empty()) {
    return Error{Code::kInvalidArgument, "the prompt is empty"};
  }
  std::size_t vocab = runner_.vocab_size();
  for (Token token : request.prompt) {
    if (token < 0 || static_cast<std::size_t>(token) >= vocab) {
      return Error{
          Code::kInvalidArgument,
          "the prompt has token " + std::to_string(token) +
              ", but the vocabulary has " + std::to_string(vocab)};
    }
  }
  if (request.prompt.size() >= runner_.context_length()) {
    return Error{
        Code::kInvalidArgument,
        "the prompt has " + std::to_string(request.prompt.size()) +
            " tokens, which leaves no room in the model's context of " +
            std::to_string(runner_.context_length())};
  }
  if (request.max_tokens == 0) {
    return Error{Code::kInvalidArgument, "max_tokens must be at least 1"};
  }
  return request.sampling.validate(vocab);
}

Result<RequestId> Scheduler::submit(GenerationRequest request) {
  CHECK(request.sink != nullptr);
  if (Status checked = check(request); !checked.ok()) {
    return checked.error();
  }
  request.max_tokens = std::min(
      request.max_tokens, runner_.context_length() - request.prompt.size()
  );
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
  auto sequence = std::make_shared<Sequence>(id, std::move(request));
  live_.emplace(id, sequence);
  arrived_.push_back(std::move(sequence));
  ++signals_;
  wake_.notify_one();
  return id;
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

void Scheduler::cancel(RequestId id) {
  std::lock_guard lock(mutex_);
  auto found = live_.find(id);
  if (found == live_.end()) {
    return;
  }
  found->second->cancel();
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

void Scheduler::run() {
  while (take_inbox()) {
    end_cancelled();
    admit();
    publish_load();
    if (!running_.empty()) {
      step();
    }
  }
  end_all();
}

// Waits for work unless sequences are running. False: stop.
bool Scheduler::take_inbox() {
  std::vector<SequencePtr> arrived;
  std::vector<std::pair<RequestId, Restored>> restored;
  std::vector<std::function<void(Runner&)>> tasks;
  {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] {
      return !running_.empty() || signals_ != seen_signals_;
    });
    seen_signals_ = signals_;
    if (stopping_) {
      return false;
    }
    arrived.swap(arrived_);
    restored.swap(restored_);
    tasks.swap(tasks_);
  }
  for (auto& task : tasks) {
    task(runner_);
    task = nullptr;
  }
  queue_.insert(queue_.end(), arrived.begin(), arrived.end());
  for (auto& [id, blocks] : restored) {
    auto found = restoring_.find(id);
    if (found != restoring_.end()) {
      SequencePtr sequence = std::move(found->second);
      restoring_.erase(found);
      start(std::move(sequence), blocks);
    }
  }
  return true;
}

void Scheduler::end_cancelled() {
  auto end_if_cancelled = [&](const SequencePtr& sequence) {
    if (!sequence->cancelled()) {
      return false;
    }
    sequence->finish(FinishReason::kCancelled);
    ended(sequence->id());
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
  for (const SequencePtr& sequence : running_) {
    reading += sequence->decoding() ? 0 : 1;
  }
  for (auto next = queue_.begin(); next != queue_.end();) {
    if (running_.size() + restoring_.size() >= options_.decode_concurrency ||
        reading >= options_.prompt_concurrency) {
      return;
    }
    if (shared_prefix_is_coming(**next)) {
      ++next;
      continue;
    }
    if (!has_room(**next)) {
      if (!running_.empty() || !restoring_.empty()) {
        return;
      }
      (*next)->fail(
          {Code::kExhausted,
           "the prompt and its answer need more memory than --memory-limit "
           "leaves"}
      );
      ended((*next)->id());
      next = queue_.erase(next);
      continue;
    }
    SequencePtr sequence = std::move(*next);
    next = queue_.erase(next);
    ++reading;
    look_up(std::move(sequence));
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

// Whether a running sequence will soon seal pages that this one needs too:
// waiting for them is cheaper than computing them again.
bool Scheduler::shared_prefix_is_coming(const Sequence& sequence) const {
  if (!sequence.request().cache) {
    return false;
  }
  const std::vector<Token>& prompt = sequence.request().prompt;
  return std::any_of(
      running_.begin(),
      running_.end(),
      [&](const SequencePtr& other) {
        if (!other->request().cache || other->decoding()) {
          return false;
        }
        const std::vector<Token>& ahead = other->request().prompt;
        auto shared = static_cast<std::size_t>(
            std::mismatch(
                prompt.begin(), prompt.end(), ahead.begin(), ahead.end()
            )
                .first -
            prompt.begin()
        );
        std::size_t read = ahead.size() - other->prompt_left();
        return read < shared / kPageTokens * kPageTokens;
      }
  );
}

void Scheduler::look_up(SequencePtr sequence) {
  const GenerationRequest& request = sequence->request();
  if (!request.cache) {
    sequence->begin_uncached(runner_);
    running_.push_back(std::move(sequence));
    return;
  }
  Match match = cache_.lookup(options_.root, request.prompt);
  bool all_in_ram = std::all_of(
      match.path().begin(),
      match.path().end(),
      [](const PathBlock& known) { return known.page != nullptr; }
  );
  // The disk may hold a block behind the known ones that another process
  // wrote, or that has not been indexed yet.
  std::size_t known_full = match.tokens() / kPageTokens;
  bool more_on_disk = (known_full + 1) * kPageTokens <= request.prompt.size();
  if (store_ == nullptr || (all_in_ram && !more_on_disk)) {
    Restored restored;
    for (const PathBlock& known : match.path()) {
      if (known.page == nullptr) {
        break;
      }
      restored.path.push_back(known);
    }
    restored.tokens =
        std::min(match.tokens(), restored.path.size() * kPageTokens);
    start(std::move(sequence), restored);
    return;
  }
  RequestId id = sequence->id();
  sequence->mark_restoring();
  std::vector<Token> prompt = request.prompt;
  restoring_.emplace(id, std::move(sequence));
  store_->restore(
      options_.root,
      std::move(prompt),
      std::move(match),
      [this, id](Restored restored) {
        std::lock_guard lock(mutex_);
        restored_.emplace_back(id, std::move(restored));
        ++signals_;
        wake_.notify_one();
      }
  );
}

// The last prompt token is always computed: its logits are needed.
void Scheduler::start(SequencePtr sequence, const Restored& restored) {
  Restored usable = restored;
  usable.tokens =
      std::min(usable.tokens, sequence->request().prompt.size() - 1);
  if (usable.tokens < options_.min_match_tokens) {
    usable = Restored{};
  }
  sequence->begin(runner_, cache_, options_.root, usable);
  running_.push_back(std::move(sequence));
}

std::vector<StepItem> Scheduler::next_items() {
  auto reading = static_cast<std::size_t>(std::count_if(
      running_.begin(),
      running_.end(),
      [](const SequencePtr& sequence) { return !sequence->decoding(); }
  ));
  std::size_t share =
      reading == 0 ? 0 : std::max<std::size_t>(1, pacer_.budget() / reading);
  std::vector<StepItem> items;
  for (const SequencePtr& sequence : running_) {
    items.push_back(sequence->next(share));
  }
  return items;
}

void Scheduler::step() {
  std::vector<StepItem> items = next_items();
  std::size_t tokens = 0;
  for (const StepItem& item : items) {
    tokens += item.tokens.size();
  }
  {
    std::lock_guard lock(mutex_);
    in_step_ = running_;
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
    pacer_.record(tokens, took.count());
    advance(items);
  } else if (status.error().code != Code::kCancelled) {
    rerun_alone(status.error());
  }
}

void Scheduler::advance(const std::vector<StepItem>& items) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (running_[i]->advance(items[i])) {
      ended(running_[i]->id());
    } else {
      running_[kept++] = std::move(running_[i]);
    }
  }
  running_.resize(kept);
}

// A failed step has left every sequence as it was. One that fails alone too
// is the cause; the others go on.
void Scheduler::rerun_alone(const Error& error) {
  std::vector<SequencePtr> survivors;
  bool alone = running_.size() == 1;
  for (SequencePtr& sequence : running_) {
    Status status = error;
    StepItem item = sequence->next(options_.pacing.min_tokens);
    if (!alone) {
      status = runner_.step(std::span(&item, 1), cancel_step_);
    }
    if (status.ok()) {
      if (sequence->advance(item)) {
        ended(sequence->id());
      } else {
        survivors.push_back(std::move(sequence));
      }
    } else if (status.error().code == Code::kCancelled) {
      survivors.push_back(std::move(sequence));
    } else {
      sequence->fail(status.error());
      ended(sequence->id());
    }
  }
  running_ = std::move(survivors);
}

void Scheduler::ended(RequestId id) {
  std::lock_guard lock(mutex_);
  live_.erase(id);
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
    ended(sequence->id());
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
