#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "engine/engine_counters.h"
#include "engine/fair_queue.h"
#include "engine/request.h"
#include "engine/runner.h"
#include "engine/sequence.h"
#include "engine/step_pacer.h"
#include "kv/prompt_cache.h"
#include "store/store.h"

namespace afterglow {

struct SchedulerOptions {
  // Of the model: name, with a namespace, the root of a request's blocks.
  Sha256Digest fingerprint{};
  Sha256Digest spec{};
  std::size_t decode_concurrency = 32;  // sequences at once
  std::size_t prompt_concurrency = 8;   // of these, still reading prompts
  std::size_t queue_limit = 256;
  // Of all pages and of what requests take besides; more never run at once.
  std::uint64_t memory_limit_bytes = CacheLimits::kUnlimited;
  std::uint64_t request_bytes = 0;    // of a running one, beside KV and tokens
  bool kv_outside_pool = false;       // sequences have arrays, pages are copies
  std::size_t min_match_tokens = 32;  // shorter matches are computed again
  StepPacer::Limits pacing;
  // One that waits is told so each time it has heard nothing for so long.
  std::chrono::milliseconds waits_in_silence{1000};
  // A step that lasts longer will not end: see Engine::health.
  std::chrono::seconds longest_step{120};
};

/// Below its root lies what was imported from others' files. Requests without
/// a namespace look there too: the longer match wins, and the request's blocks
/// go on below the root that matched.
inline constexpr std::string_view kImportedNamespace = "origin=mlx_lm";

/// Runs many requests as one ragged batch, step by step, on the thread that
/// calls run(): the generation thread. It never touches the file system and
/// never waits for a client.
/// Thread: all but run() from any thread.
class Scheduler {
 public:
  /// store may be null. Requires: all outlive the scheduler's run(); the
  /// store's pending restores end before the scheduler is destroyed.
  Scheduler(
      Runner& runner, PromptCache& cache, Store* store, SchedulerOptions options
  );

  /// Errors as Engine::submit.
  Result<RequestId> submit(GenerationRequest request);
  /// As Engine::cancel.
  void cancel(RequestId id, FinishReason reason = FinishReason::kCancelled);

  /// As Engine::choose.
  void choose(RequestId id, TokenOut token);
  /// As Engine::history.
  KvHistoryPtr history(RequestId id);

  /// Runs the task once on the generation thread, between two steps, also
  /// when no request is there; tasks run in the order of posting. All
  /// requests wait meanwhile, so a task is short. Must not throw. False, and
  /// the task is never run, after stop(); one that was posted before and has
  /// not run is destroyed without running before run() returns.
  bool post(std::function<void(Runner&)> task);

  /// Works until stop(); then ends all requests as cancelled and returns.
  void run();

  /// Refuses new requests from now on.
  void close();
  /// Waits until no request is left. False: the deadline passed first.
  bool wait_idle(std::chrono::steady_clock::time_point deadline);
  void stop();

  struct Load {
    std::size_t running = 0;  // restoring ones included
    std::size_t queued = 0;
  };
  Load load() const;
  /// As Engine::health.
  Status health() const;
  /// As Engine::retry_after.
  std::chrono::seconds retry_after() const;
  EngineCounters counters() const;

  /// Below which the blocks of a namespace's requests lie.
  BlockId root_of(const std::string& cache_namespace) const;

 private:
  using Clock = std::chrono::steady_clock;
  using SequencePtr = std::shared_ptr<Sequence>;

  /// One in the queue.
  struct Waiting {
    SequencePtr sequence;
    // Who is reading what it needs, too, and how much of that.
    std::optional<RequestId> awaits;
    std::size_t awaited_tokens = 0;
    Lent lent;  // what came of waiting
  };
  /// The one whose turn it is, until there is room for it: by then others
  /// may have come that would fit, but it would wait for ever if they went
  /// first.
  struct Next {
    SequencePtr sequence;
    Lent lent;
    Match match;  // pinned: making room must not cost what it reuses
    bool ask_store = false;
  };

  /// Who takes part in a step and with what.
  struct StepBatch {
    std::vector<SequencePtr> sequences;
    std::vector<StepItem> items;
    std::size_t tokens = 0;
    std::size_t prompt_tokens = 0;
  };

  Status check(const GenerationRequest& request) const;
  std::uint64_t most_bytes(const GenerationRequest& request, std::size_t shared)
      const;
  Status check_memory(const GenerationRequest& request) const;
  /// A client may take three quarters of the places, so that others find one.
  Status check_place(const std::string& client) const;

  // The generation thread: the loop (scheduler.cpp), admission
  // (scheduler_admission.cpp) and steps (scheduler_steps.cpp).
  bool take_inbox();
  void end_cancelled();
  void admit();
  bool has_place() const;
  bool choose_next();
  std::uint64_t promised_bytes() const;
  std::uint64_t needed_by_next() const;
  std::uint64_t taken_by_others();
  bool has_room_for_next();
  bool memory_comes_free() const;
  void refuse_next();
  SequencePtr find_running(RequestId id) const;
  void take_choices();
  bool any_ready() const;
  void look_up_next();
  void enter_next();
  void start_restored();
  void start(
      const SequencePtr& sequence, const Restored& restored, std::size_t least
  );
  void begin(Sequence& sequence, const Restored& restored, std::size_t least);
  // Who begins with whose KV (scheduler_sharing.cpp).
  std::optional<std::size_t> least_shared(
      const Sequence& from, const Sequence& to
  ) const;
  static std::size_t shared_tokens(const Sequence& from, const Sequence& to);
  bool is_reading(RequestId id, std::size_t tokens) const;
  bool must_wait(Waiting& waiting) const;
  void borrow_for_next();
  void lend_to_waiting(Sequence& sequence);
  void tell_waiting();

  // Does what may take memory on a sequence's behalf. False: the system had
  // none, so it has failed, alone, and is over.
  template <class Work>
  static bool had_memory(Sequence& sequence, const Work& work) {
    try {
      work();
      return true;
    } catch (const std::bad_alloc&) {
      sequence.abandon(
          {Code::kExhausted, "[engine.memory] the system has no memory left"}
      );
      return false;
    }
  }
  void step();
  void rerun_alone(const std::vector<SequencePtr>& batch, const Error& error);
  void drop(const SequencePtr& sequence);
  bool advance(Sequence& sequence, const StepItem& item);
  void count(const Timings& before, const Timings& after);
  void ended(const Sequence& sequence);
  void count_times(const Sequence& sequence, Clock::time_point now);
  void measure(std::size_t tokens, std::size_t prompt_tokens, double seconds);
  void end_all();
  StepBatch next_batch();
  void publish_load();
  void die(const char* why);

  Runner& runner_;  // of the generation thread, which it may end with
  const std::size_t vocab_size_;
  const std::size_t context_length_;
  const std::size_t page_bytes_;
  PromptCache& cache_;
  Store* store_;
  const SchedulerOptions options_;
  const BlockId imported_root_;

  // Of the generation thread.
  FairQueue<Waiting> queue_;
  std::optional<Next> next_;
  std::unordered_map<RequestId, SequencePtr> restoring_;
  std::vector<SequencePtr> running_;
  StepPacer pacer_;
  std::size_t steps_ = 0;
  std::uint64_t unpriced_tokens_ = 0;  // saved before a price was measured

  mutable std::mutex mutex_;
  std::condition_variable wake_;  // of the generation thread
  std::condition_variable idle_;
  // Guarded by mutex_:
  std::vector<SequencePtr> arrived_;
  std::vector<std::pair<RequestId, Restored>> restored_;
  std::vector<std::pair<RequestId, TokenOut>> chosen_;
  std::vector<std::function<void(Runner&)>> tasks_;
  std::unordered_map<RequestId, SequencePtr> live_;
  std::vector<SequencePtr> in_step_;
  EngineCounters counters_;
  std::string death_;                // why run() ended early; empty: it did not
  Clock::time_point round_began_{};  // none: there is nothing to do
  Clock::time_point last_end_{};     // of a request; or when idle time ended
  double seconds_between_ends_ = 0;  // smoothed; 0: not known
  std::uint64_t signals_ = 0;
  std::uint64_t seen_signals_ = 0;
  RequestId last_id_ = 0;
  bool closed_ = false;
  bool stopping_ = false;

  std::atomic<bool> cancel_step_{false};
  std::atomic<std::size_t> running_count_{0};
};

}  // namespace afterglow
