#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/token.h"
#include "engine/request.h"
#include "engine/runner.h"
#include "engine/sampler.h"
#include "kv/prompt_cache.h"
#include "store/store.h"

namespace afterglow {

/// A request that the generation thread works on: its tokens, its KV and the
/// trail it leaves in the cache.
/// Thread: the generation thread, except where said.
class Sequence {
 public:
  using Clock = std::chrono::steady_clock;

  Sequence(RequestId id, GenerationRequest request);

  RequestId id() const { return id_; }
  const GenerationRequest& request() const { return request_; }
  /// Thread: any.
  void cancel() { cancelled_.store(true); }
  bool cancelled() const { return cancelled_.load(); }

  /// Prepares for steps: takes the restored prefix over and starts recording.
  /// Requires: restored.tokens < prompt size.
  void begin(
      Runner& runner,
      PromptCache& cache,
      const BlockId& root,
      const Restored& restored
  );
  /// The same without the cache.
  void begin_uncached(Runner& runner);

  /// Whether the prompt has been read.
  bool decoding() const { return kv_->length() >= request_.prompt.size(); }
  std::size_t prompt_left() const {
    return request_.prompt.size() - kv_->length();
  }

  /// What to compute next: up to `budget` prompt tokens, or the last token.
  StepItem next(std::size_t budget);

  /// After a successful step: seals what is full, reports progress, samples.
  /// True when the sequence has ended and its last event been sent.
  bool advance(const StepItem& done);

  /// Ends it: seals the tail and sends the last event.
  void finish(FinishReason reason);
  void fail(Error error);

  void mark_restoring() { restore_started_ = Clock::now(); }
  /// Pages it will have at most.
  std::size_t max_pages() const;

 private:
  void prepare(Runner& runner);
  void seal_full_pages();
  void seal_tail();
  bool choose_token();
  void send(Event event);

  RequestId id_;
  GenerationRequest request_;
  Sampler sampler_;
  std::atomic<bool> cancelled_{false};
  bool listening_ = true;

  std::unique_ptr<KvState> kv_;
  Trail trail_;
  bool recording_ = false;
  std::vector<Token> tokens_;  // prompt and answer
  std::vector<float> logits_;  // [vocab]

  Timings timings_;
  Clock::time_point submitted_ = Clock::now();
  Clock::time_point restore_started_{};
  Clock::time_point began_{};
  Clock::time_point first_token_{};
};

}  // namespace afterglow
