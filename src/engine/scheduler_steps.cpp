// How those that run go on, step by step.

#include <algorithm>
#include <chrono>
#include <iterator>
#include <span>
#include <utility>

#include "engine/scheduler.h"

namespace afterglow {

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
    step_began_ = Clock::now();
  }
  auto began = Clock::now();
  Status status = runner_.step(items, cancel_step_);
  std::chrono::duration<double> took = Clock::now() - began;
  {
    std::lock_guard lock(mutex_);
    step_began_ = {};
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

}  // namespace afterglow
