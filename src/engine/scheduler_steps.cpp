// How those that run go on, step by step.

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "engine/prompt_shares.h"
#include "engine/scheduler.h"

namespace afterglow {

// All that decode are in each step, so a prompt, however long, never delays
// their next token by more than the one step that is being computed.
Scheduler::StepBatch Scheduler::next_batch() {
  StepBatch batch;
  std::vector<SequencePtr> reading;
  for (const SequencePtr& sequence : running_) {
    if (sequence->waiting()) {
      continue;
    }
    if (sequence->decoding()) {
      batch.sequences.push_back(sequence);
      batch.items.push_back(sequence->next(0));
    } else {
      reading.push_back(sequence);
    }
  }
  std::vector<PromptReader> readers;
  for (const SequencePtr& sequence : reading) {
    readers.push_back({sequence->prompt_left(), sequence->request().client});
  }
  std::vector<std::size_t> shares =
      share_prompt_budget(pacer_.budget(batch.items.size()), readers, steps_++);
  for (std::size_t i = 0; i < reading.size(); ++i) {
    if (shares[i] > 0) {
      batch.sequences.push_back(reading[i]);
      batch.items.push_back(reading[i]->next(shares[i]));
      batch.prompt_tokens += shares[i];
    }
  }
  for (const StepItem& item : batch.items) {
    batch.tokens += item.tokens.size();
  }
  return batch;
}

void Scheduler::step() {
  StepBatch batch = next_batch();
  {
    std::lock_guard lock(mutex_);
    in_step_ = batch.sequences;
    cancel_step_.store(stopping_);
  }
  auto began = Clock::now();
  Status status = runner_.step(batch.items, cancel_step_);
  std::chrono::duration<double> took = Clock::now() - began;
  {
    std::lock_guard lock(mutex_);
    in_step_.clear();
  }
  if (status.ok()) {
    measure(batch.tokens, batch.prompt_tokens, took.count());
    for (std::size_t i = 0; i < batch.items.size(); ++i) {
      if (advance(*batch.sequences[i], batch.items[i])) {
        drop(batch.sequences[i]);
      }
    }
  } else if (status.error().code != Code::kCancelled) {
    rerun_alone(batch.sequences, status.error());
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
  bool over = true;
  had_memory(sequence, [&] {
    lend_to_waiting(sequence);
    over = sequence.advance(item);
  });
  count(before, sequence.timings());
  return over;
}

void Scheduler::count(const Timings& before, const Timings& after) {
  std::lock_guard lock(mutex_);
  counters_.computed_prompt_tokens += after.prompt_n - before.prompt_n;
  counters_.generated_tokens += after.predicted_n - before.predicted_n;
}

// Requires: mutex_ is held.
void Scheduler::count_times(const Sequence& sequence, Clock::time_point now) {
  const Timings& took = sequence.timings();
  if (sequence.began()) {
    counters_.queued.add(took.queue_ms / 1000);
  }
  if (took.prompt_ms > 0) {
    counters_.first_token.add(
        (took.queue_ms + took.restore_ms + took.prompt_ms) / 1000
    );
  }
  std::chrono::duration<double> whole = now - sequence.request().arrived;
  counters_.request.add(whole.count());
}

// A failed step has left every sequence as it was. One that fails alone too
// is the cause; the others go on.
void Scheduler::rerun_alone(
    const std::vector<SequencePtr>& batch, const Error& error
) {
  for (const SequencePtr& sequence : batch) {
    Status status = error;
    StepItem item = sequence->next(pacer_.least());
    if (batch.size() > 1) {
      status = runner_.step(std::span(&item, 1), cancel_step_);
    }
    if (status.ok()) {
      if (advance(*sequence, item)) {
        drop(sequence);
      }
    } else if (status.error().code != Code::kCancelled) {
      had_memory(*sequence, [&] { sequence->fail(status.error()); });
      drop(sequence);
    }
  }
}

}  // namespace afterglow
