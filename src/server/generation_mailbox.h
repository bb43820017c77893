#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "server/answer.h"
#include "server/api_error.h"
#include "server/openai_schema.h"
#include "server/request_owner.h"

namespace afterglow {

/// A request on its way through the engine: what the connection's strand, a
/// worker and the generation thread share.
/// Thread: safe from any thread.
class GenerationMailbox
    : public std::enable_shared_from_this<GenerationMailbox> {
 public:
  /// The engine must outlive it.
  GenerationMailbox(
      Engine& engine, CompletionRequest request, RequestOwner owner
  );

  /// The worker's job: prepares and submits. Does nothing once closed.
  void run();

  struct Mail {
    std::unique_ptr<Answer> answer;  // once, before any event
    std::optional<ApiError> failure;
    std::vector<std::pair<std::size_t, Event>> events;  // of choices
  };
  /// What has come since the last call; events only behind the answer.
  Mail take() {
    const std::lock_guard lock(mutex_);
    Mail mail{std::move(answer_), std::exchange(failure_, std::nullopt), {}};
    if (posted_) mail.events.swap(events_);
    return mail;
  }

  /// `wake` is called for each mail until close. Call it before run.
  void open(std::function<void()> wake) {
    const std::lock_guard lock(mutex_);
    wake_ = std::move(wake);
  }
  /// Ends a choice in the engine; its last event still comes.
  void cancel(std::size_t choice, FinishReason reason) {
    std::optional<RequestId> id;
    {
      const std::lock_guard lock(mutex_);
      Ticket& ticket = tickets_[choice];
      if (!ticket.cancel) ticket.cancel = reason;
      id = std::exchange(ticket.id, std::nullopt);
    }
    if (id) engine_.cancel(*id, reason);
  }
  void cancel_all() {
    for (std::size_t i = 0; i < choices(); ++i) {
      cancel(i, FinishReason::kCancelled);
    }
  }
  /// Nothing is taken any more, and nobody woken. A request that no worker
  /// has begun with is dropped.
  void close() {
    std::unique_ptr<Answer> answer;
    std::unique_ptr<const CompletionRequest> request;
    const std::lock_guard lock(mutex_);
    closed_ = true;
    wake_ = nullptr;
    answer.swap(answer_);
    request.swap(request_);
    events_.clear();
  }

  const std::string& id() const { return identity_.id; }
  const std::string& client() const { return owner_.client; }
  std::size_t choices() const { return tickets_.size(); }

 private:
  /// A choice's place in the engine.
  struct Ticket {
    std::optional<RequestId> id;         // until cancelled
    std::optional<FinishReason> cancel;  // is wanted
  };
  class Sink;

  bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }
  bool put(std::size_t choice, Event event) {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    events_.emplace_back(choice, std::move(event));
    wake_();
    return true;
  }
  void fail(ApiError error) {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(error);
    if (!closed_) wake_();
  }
  /// An error of the engine's: what it refuses of a request whose other
  /// members have been looked at is its prompts.
  void fail(const CompletionRequest& asked, const Error& error);
  void prepare_and_submit(const CompletionRequest& asked);
  std::optional<std::vector<PreparedPrompt>> prepare_all(
      const CompletionRequest& asked
  );
  std::unique_ptr<Answer> make_answer(
      const CompletionRequest& asked, const std::vector<PreparedPrompt>& prompts
  );
  void post(std::unique_ptr<Answer> answer);
  bool submit(
      const CompletionRequest& asked,
      std::size_t choice,
      GenerationRequest request
  );
  GenerationRequest generation_request(
      const CompletionRequest& asked, PreparedPrompt prompt
  ) const;

  Engine& engine_;
  const RequestOwner owner_;
  const AnswerIdentity identity_;
  const std::chrono::steady_clock::time_point arrived_ =
      std::chrono::steady_clock::now();

  mutable std::mutex mutex_;
  std::function<void()> wake_;
  bool closed_ = false;
  std::vector<Ticket> tickets_;                       // of all choices
  std::unique_ptr<const CompletionRequest> request_;  // until a worker has it
  bool posted_ = false;  // the answer was, and events may follow
  std::unique_ptr<Answer> answer_;
  std::optional<ApiError> failure_;
  std::vector<std::pair<std::size_t, Event>> events_;
};

}  // namespace afterglow
