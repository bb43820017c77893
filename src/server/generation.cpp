#include "server/generation.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdio>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/xtc_special_tokens.h"
#include "server/answer.h"

namespace afterglow {
namespace {

std::string random_id(const char* prefix) {
  static thread_local std::mt19937_64 random{std::random_device{}()};
  char digits[33];
  std::snprintf(
      digits,
      sizeof digits,
      "%016llx%016llx",
      static_cast<unsigned long long>(random()),
      static_cast<unsigned long long>(random())
  );
  return std::string(prefix) + digits;
}

AnswerIdentity make_identity(const Engine& engine, bool chat) {
  AnswerIdentity identity;
  identity.id = random_id(chat ? "chatcmpl-" : "cmpl-");
  identity.model = engine.info().name;
  identity.created = std::chrono::duration_cast<std::chrono::seconds>(
                         std::chrono::system_clock::now().time_since_epoch()
  )
                         .count();
  identity.chat = chat;
  return identity;
}

Result<PreparedPrompt> prepare(
    const Engine& engine, const CompletionRequest& request
) {
  if (const auto* chat = std::get_if<ChatPrompt>(&request.prompt)) {
    return engine.prepare_chat(
        {.messages = chat->messages_json, .variables = chat->kwargs_json}
    );
  }
  if (const auto* text = std::get_if<TextPrompt>(&request.prompt)) {
    return engine.prepare_text(*text);
  }
  return PreparedPrompt{
      .tokens = std::get<TokenPrompt>(request.prompt), .boundaries = {}};
}

const char* prompt_field(const CompletionRequest& request) {
  return request.chat() ? "messages" : "prompt";
}

/// What the connection's strand, a worker and the generation thread share.
/// Thread: safe from any thread.
class Mailbox : public EventSink, public std::enable_shared_from_this<Mailbox> {
 public:
  Mailbox(
      Engine& engine, CompletionRequest request, std::string cache_namespace
  )
      : engine_(engine),
        request_(std::move(request)),
        cache_namespace_(std::move(cache_namespace)) {}

  /// The worker's job: prepares and submits.
  void prepare_and_submit();

  bool send(Event event) override {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    events_.push_back(std::move(event));
    wake_();
    return true;
  }

  struct Mail {
    std::unique_ptr<Answer> answer;  // once, before any event
    std::optional<ApiError> failure;
    std::vector<Event> events;
  };
  Mail take() {
    const std::lock_guard lock(mutex_);
    Mail mail{std::move(answer_), std::move(failure_), std::move(events_)};
    failure_.reset();
    events_.clear();
    return mail;
  }

  void open(std::function<void()> wake) {
    const std::lock_guard lock(mutex_);
    wake_ = std::move(wake);
  }
  /// Ends the request in the engine; its last event still comes.
  void cancel(FinishReason reason) {
    std::optional<RequestId> id;
    {
      const std::lock_guard lock(mutex_);
      cancel_wanted_ = true;
      id = std::exchange(id_, std::nullopt);
    }
    if (id) engine_.cancel(*id, reason);
  }
  /// Nothing is taken any more, and nobody woken.
  void close() {
    std::unique_ptr<Answer> answer;
    const std::lock_guard lock(mutex_);
    closed_ = true;
    wake_ = nullptr;
    answer.swap(answer_);
    events_.clear();
  }

  const std::string& id() const { return identity_.id; }

 private:
  bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }
  void fail(ApiError error) {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(error);
    if (!closed_) wake_();
  }
  void post_answer(std::size_t prompt_tokens) {
    auto answer = std::make_unique<Answer>(
        request_, identity_, prompt_tokens, engine_.tokenizer()
    );
    const std::lock_guard lock(mutex_);
    if (!closed_) answer_ = std::move(answer);
  }
  GenerationRequest generation_request(PreparedPrompt prompt) {
    GenerationRequest request;
    request.prompt = std::move(prompt.tokens);
    request.boundaries = std::move(prompt.boundaries);
    request.sampling = request_.sampling;
    if (request.sampling.xtc_probability > 0) {
      request.sampling.xtc_special_tokens =
          xtc_special_tokens(engine_.tokenizer(), engine_.info().stop_tokens);
    }
    request.max_tokens = request_.max_tokens;
    request.stop_tokens = engine_.info().stop_tokens;
    request.logprobs = request_.logprobs;
    request.top_logprobs = request_.top_logprobs;
    request.cache_read = request_.cache_read;
    request.cache_store = request_.cache_store;
    request.cache_namespace = cache_namespace_;
    request.label = identity_.id;
    request.sink = shared_from_this();
    return request;
  }

  Engine& engine_;
  const CompletionRequest request_;
  const std::string cache_namespace_;
  const AnswerIdentity identity_ = make_identity(engine_, request_.chat());

  mutable std::mutex mutex_;
  std::function<void()> wake_;
  bool closed_ = false;
  bool cancel_wanted_ = false;
  std::optional<RequestId> id_;  // until cancelled
  std::unique_ptr<Answer> answer_;
  std::optional<ApiError> failure_;
  std::vector<Event> events_;
};

void Mailbox::prepare_and_submit() {
  if (closed()) return;
  auto prompt = prepare(engine_, request_);
  if (!prompt.ok()) {
    ApiError error = to_api_error(prompt.error());
    if (error.status == 400) error.param = prompt_field(request_);
    return fail(std::move(error));
  }
  const std::size_t length = prompt->tokens.size();
  const std::size_t context = engine_.info().context_length;
  if (length >= context) {
    return fail(invalid_field(
        prompt_field(request_),
        "the prompt has " + std::to_string(length) +
            " tokens; the model's context holds " + std::to_string(context) +
            " with the answer",
        "context_length_exceeded"
    ));
  }
  post_answer(length);
  auto submitted = engine_.submit(generation_request(*std::move(prompt)));
  if (!submitted.ok()) return fail(to_api_error(submitted.error()));
  bool cancel_now = false;
  {
    const std::lock_guard lock(mutex_);
    cancel_now = cancel_wanted_;
    if (!cancel_now) id_ = *submitted;
  }
  if (cancel_now) engine_.cancel(*submitted, FinishReason::kCancelled);
}

class Generation : public Exchange {
 public:
  Generation(
      Engine& engine,
      Workers& workers,
      CompletionRequest request,
      std::string cache_namespace
  )
      : workers_(workers),
        mailbox_(std::make_shared<Mailbox>(
            engine, std::move(request), std::move(cache_namespace)
        )) {}

  ~Generation() override {
    mailbox_->close();
    mailbox_->cancel(FinishReason::kCancelled);
  }

  void start(std::function<void()> wake) override {
    mailbox_->open(std::move(wake));
    workers_.post([mailbox = mailbox_] { mailbox->prepare_and_submit(); });
  }

  Output take() override {
    if (done_) return std::exchange(last_, {});
    Mailbox::Mail mail = mailbox_->take();
    if (mail.answer) answer_ = std::move(mail.answer);
    if (mail.failure) {
      fail(*mail.failure);
      return std::exchange(last_, {});
    }
    if (!answer_) return {};
    for (Event& event : mail.events) answer_->on(std::move(event));
    if (answer_->stopped() && !answer_->done() && !cancelled_) {
      cancelled_ = true;
      mailbox_->cancel(FinishReason::kStop);
    }
    if (answer_->done()) {
      done_ = true;
      log();
    }
    return answer_->take_output();
  }

  void fail(const ApiError& error) override {
    if (done_) return;
    done_ = true;
    mailbox_->cancel(FinishReason::kCancelled);
    if (answer_) {
      answer_->fail(error);
      last_ = answer_->take_output();
    } else {
      last_ = error_output(error);
    }
    spdlog::warn(
        "request id={} status={} error=\"{}\"",
        mailbox_->id(),
        error.status,
        error.message
    );
  }

 private:
  void log() const {
    const auto& timings = answer_->timings();
    if (!timings) {
      spdlog::warn("request id={} finish=error", mailbox_->id());
      return;
    }
    spdlog::info(
        "request id={} finish={} prompt_n={} cache_ram_n={} cache_disk_n={} "
        "predicted_n={} queue_ms={:.1f} restore_ms={:.1f} prompt_ms={:.1f} "
        "predicted_ms={:.1f}",
        mailbox_->id(),
        answer_->finish_reason(),
        timings->prompt_n,
        timings->cache_ram_n,
        timings->cache_disk_n,
        timings->predicted_n,
        timings->queue_ms,
        timings->restore_ms,
        timings->prompt_ms,
        timings->predicted_ms
    );
  }

  Workers& workers_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::unique_ptr<Answer> answer_;
  bool cancelled_ = false;
  bool done_ = false;
  Output last_;  // of a failure
};

}  // namespace

std::unique_ptr<Exchange> make_generation(
    Engine& engine,
    Workers& workers,
    CompletionRequest request,
    std::string cache_namespace
) {
  return std::make_unique<Generation>(
      engine, workers, std::move(request), std::move(cache_namespace)
  );
}

}  // namespace afterglow
