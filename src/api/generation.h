#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <variant>
#include <vector>

#include "api/model_state.h"
#include "engine/request.h"

namespace afterglow {

/// One request as its caller sees it: events and logits in their order, and
/// what it has read and written, while it runs and afterwards. Destroying it
/// ends the request.
/// Thread: safe from any thread.
class Generation {
 public:
  using Logits = std::vector<float>;
  using Happening = std::variant<Progress, TokenOut, Finished, Failed, Logits>;
  using Deadline = std::optional<std::chrono::steady_clock::time_point>;

  /// Saturates. Thread: any.
  static Deadline after(std::chrono::milliseconds at_most) {
    constexpr std::chrono::milliseconds kLong = std::chrono::hours(24 * 365);
    if (at_most > kLong) return std::nullopt;
    return std::chrono::steady_clock::now() + at_most;
  }

  /// Queues the request. caller_chooses: its tokens, by choose(). `stop` cuts
  /// it. Throws: what Engine::submit refuses.
  Generation(
      std::shared_ptr<ModelState> model,
      GenerationRequest request,
      bool caller_chooses,
      std::stop_token stop
  );
  ~Generation() { cancel(FinishReason::kCancelled); }
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  /// The next one; none when none came in time. No deadline: it waits.
  std::optional<Happening> next(const Deadline& deadline) {
    return inbox_->next(deadline);
  }
  void choose(TokenOut token) {
    model_->engine().choose(id_, std::move(token));
  }
  void cancel(FinishReason reason) { model_->engine().cancel(id_, reason); }
  /// What it has read and written so far, or in all. Null: it ended before it
  /// had begun. Requires: the request had return_history, and has begun or
  /// will end.
  KvHistoryPtr history();

 private:
  // Apart, since the engine's thread may be the last to let go of it, which
  // must not be the last to let go of the engine.
  class Inbox : public EventSink, public LogitsSink {
   public:
    bool send(Event event) override;
    bool send_logits(Logits logits) override;
    std::optional<Happening> next(const Deadline& deadline);
    bool ended();
    KvHistoryPtr wait_for_history();

   private:
    bool add(Happening happening);

    std::mutex mutex_;
    std::condition_variable changed_;
    // Guarded by mutex_:
    std::deque<Happening> waiting_;
    bool ended_ = false;
    KvHistoryPtr history_;
  };

  struct Cut {
    Generation* generation;
    void operator()() const { generation->cancel(FinishReason::kCancelled); }
  };

  const std::shared_ptr<ModelState> model_;
  const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  RequestId id_ = 0;
  std::optional<std::stop_callback<Cut>> on_stop_;  // goes first
};

}  // namespace afterglow
