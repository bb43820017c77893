#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/token.h"
#include "engine/kv_history.h"
#include "engine/request.h"
#include "engine/runner.h"
#include "engine/sampler.h"
#include "kv/prompt_cache.h"
#include "store/store.h"

namespace afterglow {

/// The KV of a sequence's first tokens for another one to begin with.
struct Lent {
  Restored restored;
  BlockId root;  // below which its blocks lie
};

/// A request that the generation thread works on: its tokens, its KV and the
/// trail it leaves in the cache.
/// Thread: the generation thread, except where said.
class Sequence {
 public:
  using Clock = std::chrono::steady_clock;

  /// root: below which its blocks lie.
  Sequence(RequestId id, GenerationRequest request, const BlockId& root);

  RequestId id() const { return id_; }
  const GenerationRequest& request() const { return request_; }
  const BlockId& root() const { return root_; }
  /// Requires: begin() was not called yet.
  void set_root(const BlockId& root) { root_ = root; }
  /// The reason it will end for, if nothing else ends it first.
  /// Thread: any.
  void cancel(FinishReason reason) {
    cancel_reason_.store(reason);
    cancelled_.store(true);
  }
  bool cancelled() const { return cancelled_.load(); }
  FinishReason cancel_reason() const { return cancel_reason_.load(); }

  /// How its tokens and KV are to be told at the end.
  void keep_history(KvOrigin origin, KvLayout layout) {
    history_origin_ = origin;
    history_layout_ = std::move(layout);
  }
  /// Its tokens that have KV, with it. Null before begin and after the end.
  /// Requires: keep_history was called.
  KvHistoryPtr history();
  /// The KV of its first tokens, frozen. Requires: it has that many.
  Lent lend(std::size_t tokens);

  /// Whether someone else is to choose the next token: no step until then.
  bool waiting() const { return waiting_; }
  /// Goes on with a token chosen elsewhere. True when the sequence has ended.
  /// Requires: waiting().
  bool accept(TokenOut out);

  /// Prepares for steps: takes the first `reused` restored tokens over and,
  /// if the request lets it, starts recording.
  /// Requires: reused <= restored.tokens, reused < prompt size.
  void begin(
      Runner& runner,
      PromptCache& cache,
      const Restored& restored,
      std::size_t reused
  );

  /// Whether the prompt has been read. False before begin.
  bool decoding() const { return prompt_read() >= request_.prompt.size(); }
  /// Tokens of the prompt, or of it and its answer, that have KV.
  std::size_t prompt_read() const { return kv_ ? kv_->length() : 0; }
  std::size_t prompt_left() const {
    return request_.prompt.size() - prompt_read();
  }

  /// What to compute next: up to `budget` prompt tokens, or the last token.
  StepItem next(std::size_t budget);

  /// After a successful step: seals what is full, reports progress, samples.
  /// True when the sequence has ended and its last event been sent.
  bool advance(const StepItem& done);

  /// Ends it: seals the tail and sends the last event.
  void finish(FinishReason reason);
  void fail(Error error);
  /// Fails it without a look at its KV, which may be amiss.
  void abandon(Error error);

  /// So far; complete once it has ended.
  const Timings& timings() const { return timings_; }
  bool began() const { return began_ != Clock::time_point{}; }
  /// Prompt tokens that were restored and computed nevertheless.
  std::size_t recomputed() const { return recomputed_; }
  /// Why it ended; none: it runs, or has failed.
  std::optional<FinishReason> reason() const { return reason_; }

  /// Tells that it waits, with so many tokens of its prompt read by another,
  /// unless an event was sent in the last `patience`. Cancels it when nobody
  /// listens any more. Requires: begin() was not called yet.
  void tell_waits(std::size_t read, Clock::duration patience);
  /// It waits for the disk. in_ram: tokens that lay in memory by then.
  void mark_restoring(std::size_t in_ram) {
    restore_started_ = Clock::now();
    in_ram_ = in_ram;
  }
  /// As mark_restoring was told; 0 before.
  std::size_t in_ram() const { return in_ram_; }
  /// Pages it will have at most.
  std::size_t max_pages() const {
    return pages_for(request_.prompt.size() + request_.max_tokens);
  }
  /// Pages it may yet make. Requires: begin() was called.
  std::size_t pages_to_come() const {
    const bool tail_frozen = frozen_at_ == kv_->length();
    return max_pages() - pages_for(kv_->length()) + (tail_frozen ? 1 : 0);
  }
  /// What its tokens take besides KV.
  std::size_t token_bytes() const {
    return (2 * request_.prompt.size() + request_.max_tokens) * sizeof(Token);
  }
  /// Of arrays or pages, shared ones included. Requires: begin() was called.
  std::size_t kv_bytes() const { return kv_->bytes(); }

 private:
  void prepare(Runner& runner);
  void count_prompt_tokens(const StepItem& done);
  void seal_full_pages();
  void seal_tail();
  PagePtr seal(std::size_t page);
  KvHistoryPtr release();
  void mark_prompt_read();
  bool choose_token();
  void send(Event event);

  RequestId id_;
  GenerationRequest request_;
  BlockId root_;
  Sampler sampler_;
  std::atomic<bool> cancelled_{false};
  std::atomic<FinishReason> cancel_reason_{FinishReason::kCancelled};
  bool listening_ = true;

  std::unique_ptr<KvState> kv_;
  Trail trail_;
  bool recording_ = false;
  // The length at which its tail was frozen: the next token is written to a
  // copy of it.
  std::optional<std::size_t> frozen_at_;
  std::vector<Token> tokens_;  // prompt and answer
  std::size_t vocab_size_ = 0;
  std::vector<float> logits_;  // [vocab]
  bool waiting_ = false;
  std::optional<KvOrigin> history_origin_;
  KvLayout history_layout_;

  Timings timings_;
  std::size_t in_ram_ = 0;
  std::size_t restored_ = 0;  // tokens that are not to be computed
  std::size_t recomputed_ = 0;
  std::optional<FinishReason> reason_;
  std::optional<Token> stop_token_;
  Clock::time_point last_event_ = request_.arrived;
  Clock::time_point restore_started_{};
  Clock::time_point began_{};
  Clock::time_point first_token_{};
};

}  // namespace afterglow
