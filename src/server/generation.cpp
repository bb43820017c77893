#include "server/generation.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/xtc_special_tokens.h"
#include "server/answer.h"
#include "server/log_value.h"
#include "server/prompt_fields.h"
#include "server/random_id.h"

namespace afterglow {
namespace {

AnswerIdentity make_identity(const Engine& engine, bool chat) {
  AnswerIdentity identity;
  identity.id = random_id(chat ? "chatcmpl-" : "cmpl-");
  identity.model = engine.info().name;
  identity.fingerprint =
      "afterglow-" AFTERGLOW_VERSION " " + engine.info().backend;
  identity.created = std::chrono::duration_cast<std::chrono::seconds>(
                         std::chrono::system_clock::now().time_since_epoch()
  )
                         .count();
  identity.chat = chat;
  return identity;
}

Result<PreparedPrompt> prepare(const Engine& engine, const AnyPrompt& prompt) {
  if (const auto* chat = std::get_if<ChatPrompt>(&prompt)) {
    return engine.prepare_chat(chat->input());
  }
  if (const auto* text = std::get_if<TextPrompt>(&prompt)) {
    return engine.prepare_text(*text);
  }
  return PreparedPrompt{
      .tokens = std::get<TokenPrompt>(prompt), .boundaries = {}};
}

const char* prompt_field(const CompletionRequest& request) {
  return request.chat() ? "messages" : "prompt";
}

/// The member that an error about the prompts is about.
const char* member_at_fault(
    const CompletionRequest& request, const Error& error
) {
  const ChatPrompt* chat = request.chat_prompt();
  return chat == nullptr ? "prompt" : member_at_fault(*chat, error);
}

/// What the connection's strand, a worker and the generation thread share.
/// Thread: safe from any thread.
class Mailbox : public std::enable_shared_from_this<Mailbox> {
 public:
  Mailbox(Engine& engine, CompletionRequest request, RequestOwner owner)
      : engine_(engine),
        owner_(std::move(owner)),
        identity_(make_identity(engine_, request.chat())),
        tickets_(request.choices()),
        request_(std::make_unique<const CompletionRequest>(std::move(request))
        ) {}

  /// The worker's job: prepares and submits. Does nothing once closed.
  void run();

  struct Mail {
    std::unique_ptr<Answer> answer;  // once, before any event
    std::optional<ApiError> failure;
    std::vector<std::pair<std::size_t, Event>> events;  // of choices
  };
  Mail take() {
    const std::lock_guard lock(mutex_);
    Mail mail{std::move(answer_), std::exchange(failure_, std::nullopt), {}};
    if (posted_) mail.events.swap(events_);
    return mail;
  }

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
  void fail(const CompletionRequest& asked, const Error& error) {
    ApiError answer = to_api_error(error);
    if (answer.status == 400) {
      answer.param = member_at_fault(asked, error);
    }
    if (error.code == Code::kOverloaded) {
      answer.retry_seconds =
          static_cast<unsigned>(engine_.retry_after().count());
    }
    fail(std::move(answer));
  }
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

/// Puts the events of one choice into the mailbox.
class Mailbox::Sink : public EventSink {
 public:
  Sink(std::shared_ptr<Mailbox> mailbox, std::size_t choice)
      : mailbox_(std::move(mailbox)), choice_(choice) {}
  bool send(Event event) override {
    return mailbox_->put(choice_, std::move(event));
  }

 private:
  const std::shared_ptr<Mailbox> mailbox_;
  const std::size_t choice_;
};

/// What may be said of an answer's tokens before any of it is sent: a whole
/// answer waits in memory for its last choice.
std::optional<ApiError> too_many_logprobs(
    const CompletionRequest& request, std::size_t answer_tokens
) {
  constexpr std::size_t kMost = 1 << 18;  // about 100 bytes of JSON each
  if (request.stream || !request.logprobs) return std::nullopt;
  const std::size_t count = answer_tokens * (request.top_logprobs + 1);
  if (count <= kMost) return std::nullopt;
  return invalid_field(
      "logprobs",
      "up to " + std::to_string(count) +
          " logprobs could come in one answer, and at most " +
          std::to_string(kMost) +
          " may; stream it, or lower n, max_tokens or top_logprobs",
      "too_many_logprobs"
  );
}

/// Nothing after a failure, or when nobody waits any more.
std::optional<std::vector<PreparedPrompt>> Mailbox::prepare_all(
    const CompletionRequest& asked
) {
  std::vector<PreparedPrompt> prompts;
  std::size_t answer_tokens = 0;
  const std::size_t context = engine_.info().context_length;
  for (const AnyPrompt& given : asked.prompts) {
    if (closed()) return std::nullopt;
    auto prompt = prepare(engine_, given);
    if (!prompt.ok()) {
      fail(asked, prompt.error());
      return std::nullopt;
    }
    const std::size_t length = prompt->tokens.size();
    if (length >= context) {
      fail(invalid_field(
          prompt_field(asked),
          "the prompt has " +
              (length > context ? "more than " + std::to_string(context)
                                : std::to_string(length)) +
              " tokens; the model's context holds " + std::to_string(context) +
              " with the answer",
          "context_length_exceeded"
      ));
      return std::nullopt;
    }
    answer_tokens += asked.n * std::min(asked.max_tokens, context - length);
    prompts.push_back(*std::move(prompt));
  }
  if (auto error = too_many_logprobs(asked, answer_tokens)) {
    fail(*std::move(error));
    return std::nullopt;
  }
  return prompts;
}

/// Null after a failure.
std::unique_ptr<Answer> Mailbox::make_answer(
    const CompletionRequest& asked, const std::vector<PreparedPrompt>& prompts
) {
  const auto reading = answer_reading(asked, engine_.answer_format());
  if (!reading.ok()) {
    fail(asked, reading.error());
    return nullptr;
  }
  return std::make_unique<Answer>(
      asked, identity_, *reading, prompts, engine_.tokenizer()
  );
}

void Mailbox::post(std::unique_ptr<Answer> answer) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  answer_ = std::move(answer);
  posted_ = true;
  wake_();
}

GenerationRequest Mailbox::generation_request(
    const CompletionRequest& asked, PreparedPrompt prompt
) const {
  GenerationRequest request;
  request.prompt = std::move(prompt.tokens);
  request.boundaries = std::move(prompt.boundaries);
  request.sampling = asked.sampling;
  if (request.sampling.xtc_probability > 0) {
    request.sampling.xtc_special_tokens =
        xtc_special_tokens(engine_.tokenizer(), engine_.info().stop_tokens);
  }
  request.max_tokens = asked.max_tokens;
  request.stop_tokens = engine_.info().stop_tokens;
  request.logprobs = asked.logprobs;
  request.top_logprobs = asked.top_logprobs;
  request.cache_read = asked.cache_read;
  request.cache_store = asked.cache_store;
  request.cache_namespace = owner_.cache_namespace;
  request.client = owner_.client;
  request.label = identity_.id;
  request.arrived = arrived_;
  return request;
}

void Mailbox::run() {
  std::unique_ptr<const CompletionRequest> asked;
  {
    const std::lock_guard lock(mutex_);
    asked.swap(request_);
  }
  if (!asked) return;
  try {
    prepare_and_submit(*asked);
  } catch (const std::exception& thrown) {
    fail(to_api_error(thrown));
  }
}

void Mailbox::prepare_and_submit(const CompletionRequest& asked) {
  const std::size_t vocab_size = engine_.info().vocab_size;
  if (auto fault = find_fault(asked.sampling, vocab_size)) {
    fail(invalid_field(fault->parameter, std::move(fault->message)));
    return;
  }
  auto prompts = prepare_all(asked);
  if (!prompts) return;
  auto answer = make_answer(asked, *prompts);
  if (!answer) return;
  const auto group = std::make_shared<const ShareGroup>();
  for (std::size_t i = 0; i < choices(); ++i) {
    const std::size_t of_prompt = i % asked.n;
    GenerationRequest request =
        generation_request(asked, (*prompts)[i / asked.n]);
    if (request.sampling.seed) *request.sampling.seed += of_prompt;
    request.share_group = group;
    request.sink = std::make_shared<Sink>(shared_from_this(), i);
    if (!submit(asked, i, std::move(request))) return;
  }
  // Not before: one that is refused has a status of its own, even if others
  // have begun.
  post(std::move(answer));
}

/// False: the answer has failed, or nobody waits for it.
bool Mailbox::submit(
    const CompletionRequest& asked,
    std::size_t choice,
    GenerationRequest request
) {
  const bool long_prompt = request.prompt.size() > request.max_tokens;
  auto submitted = engine_.submit(std::move(request));
  if (!submitted.ok()) {
    const Error& error = submitted.error();
    if (error.code == Code::kExhausted) {
      // Choices take turns, so it is one of them that never fits.
      fail(invalid_field(
          long_prompt ? prompt_field(asked) : "max_tokens",
          to_api_error(error).message,
          "memory_limit_exceeded"
      ));
    } else {
      fail(asked, error);
    }
    return false;
  }
  std::optional<FinishReason> cancel;
  {
    const std::lock_guard lock(mutex_);
    cancel = tickets_[choice].cancel;
    if (!cancel) tickets_[choice].id = *submitted;
  }
  if (cancel) engine_.cancel(*submitted, *cancel);
  return !closed();
}

class Generation : public Exchange {
 public:
  Generation(
      Engine& engine,
      Workers& workers,
      CompletionRequest request,
      RequestOwner owner
  )
      : workers_(workers),
        mailbox_(std::make_shared<Mailbox>(
            engine, std::move(request), std::move(owner)
        )),
        cancelled_(mailbox_->choices()) {}

  ~Generation() override {
    if (!done_) {
      spdlog::info("request id={} finish=cancelled", mailbox_->id());
    }
    mailbox_->close();
    mailbox_->cancel_all();
  }

  void start(std::function<void()> wake) override {
    mailbox_->open(std::move(wake));
    workers_.post(mailbox_->client(), [mailbox = mailbox_] { mailbox->run(); });
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
    for (auto& [choice, event] : mail.events) {
      answer_->on(choice, std::move(event));
    }
    if (answer_->done()) {
      done_ = true;
      if (answer_->error()) {
        mailbox_->cancel_all();
        log(*answer_->error());
      } else {
        log();
      }
    } else {
      cancel_stopped();
    }
    return answer_->take_output();
  }

  void fail(const ApiError& error) override {
    if (done_) return;
    done_ = true;
    mailbox_->cancel_all();
    if (answer_) {
      answer_->fail(error);
      last_ = answer_->take_output();
    } else {
      last_ = error_output(error);
      last_.head->headers.emplace_back("X-Request-Id", mailbox_->id());
    }
    log(error);
  }

 private:
  void cancel_stopped() {
    for (std::size_t i = 0; i < cancelled_.size(); ++i) {
      if (cancelled_[i] || !answer_->stopped(i)) continue;
      cancelled_[i] = true;
      mailbox_->cancel(i, FinishReason::kStop);
    }
  }

  /// What is wrong with a request may quote it, and is its client's to know.
  void log(const ApiError& error) const {
    const bool ours = error.status >= 500;
    spdlog::log(
        ours ? spdlog::level::warn : spdlog::level::info,
        "request id={} finish=error status={}{}{}",
        mailbox_->id(),
        error.status,
        fault_for_log(error),
        ours ? " error=" + log_value(text_for_log(error)) : ""
    );
  }

  void log() const {
    const Timings timings = answer_->timings();
    spdlog::info(
        "request id={} choices={} finish={} prompt_n={} cache_ram_n={} "
        "cache_disk_n={} predicted_n={} queue_ms={:.1f} restore_ms={:.1f} "
        "prompt_ms={:.1f} predicted_ms={:.1f}",
        mailbox_->id(),
        mailbox_->choices(),
        answer_->finish_reason(),
        timings.prompt_n,
        timings.cache_ram_n,
        timings.cache_disk_n,
        timings.predicted_n,
        timings.queue_ms,
        timings.restore_ms,
        timings.prompt_ms,
        timings.predicted_ms
    );
  }

  Workers& workers_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::unique_ptr<Answer> answer_;
  std::vector<bool> cancelled_;  // choices
  bool done_ = false;
  Output last_;  // of a failure
};

}  // namespace

std::unique_ptr<Exchange> make_generation(
    Engine& engine,
    Workers& workers,
    CompletionRequest request,
    RequestOwner owner
) {
  return std::make_unique<Generation>(
      engine, workers, std::move(request), std::move(owner)
  );
}

}  // namespace afterglow
