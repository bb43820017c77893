#include "server/generation_mailbox.h"

#include <algorithm>
#include <exception>
#include <variant>

#include "engine/xtc_special_tokens.h"
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

}  // namespace

GenerationMailbox::GenerationMailbox(
    Engine& engine, CompletionRequest request, RequestOwner owner
)
    : engine_(engine),
      owner_(std::move(owner)),
      identity_(make_identity(engine_, request.chat())),
      tickets_(request.choices()),
      request_(std::make_unique<const CompletionRequest>(std::move(request))) {}

/// Puts the events of one choice into the mailbox.
class GenerationMailbox::Sink : public EventSink {
 public:
  Sink(std::shared_ptr<GenerationMailbox> mailbox, std::size_t choice)
      : mailbox_(std::move(mailbox)), choice_(choice) {}
  bool send(Event event) override {
    return mailbox_->put(choice_, std::move(event));
  }

 private:
  const std::shared_ptr<GenerationMailbox> mailbox_;
  const std::size_t choice_;
};

void GenerationMailbox::fail(
    const CompletionRequest& asked, const Error& error
) {
  ApiError answer = to_api_error(error);
  if (answer.status == 400) {
    answer.param = member_at_fault(asked, error);
  }
  if (error.code == Code::kOverloaded) {
    answer.retry_seconds = static_cast<unsigned>(engine_.retry_after().count());
  }
  fail(std::move(answer));
}

/// Nothing after a failure, or when nobody waits any more.
std::optional<std::vector<PreparedPrompt>> GenerationMailbox::prepare_all(
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
std::unique_ptr<Answer> GenerationMailbox::make_answer(
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

void GenerationMailbox::post(std::unique_ptr<Answer> answer) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  answer_ = std::move(answer);
  posted_ = true;
  wake_();
}

GenerationRequest GenerationMailbox::generation_request(
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

void GenerationMailbox::run() {
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

void GenerationMailbox::prepare_and_submit(const CompletionRequest& asked) {
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
bool GenerationMailbox::submit(
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

}  // namespace afterglow
