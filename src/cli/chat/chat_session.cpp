#include "cli/chat/chat_session.h"

#include <chrono>
#include <utility>
#include <vector>

#include "api/raise.h"

namespace afterglow {
namespace {

constexpr std::chrono::milliseconds kTick(50);

}  // namespace

ChatSession::ChatSession(
    const Model& model,
    GenerateOptions options,
    std::optional<std::string> system_prompt
)
    : model_(model), options_(std::move(options)) {
  options_.return_cache = true;
  conversation_.system_prompt = std::move(system_prompt);
}

Prompt ChatSession::prompt_for(const std::string& text) const {
  Prompt prompt = model_.apply_chat_template(with_message(conversation_, text));
  const std::size_t tokens = prompt.tokens()->size();
  const std::size_t most = model_.info().context_length;
  if (tokens >= most) {
    raise(
        {Code::kExhausted,
         "[chat] the context is full: with this message the conversation has " +
             std::to_string(tokens) + " tokens, and the model holds " +
             std::to_string(most) +
             ". It stays as it was: say something shorter, keep it with "
             "/save FILE, or begin anew with /reset"}
    );
  }
  return prompt;
}

TextStream ChatSession::ask(
    const std::string& text,
    std::stop_token cancel,
    std::function<void(std::size_t done, std::size_t total)> progress
) const {
  GenerateOptions options = options_;
  options.cache_history = history_;
  options.cancel = std::move(cancel);
  options.prompt_progress_callback = std::move(progress);
  return stream_generate(model_, prompt_for(text), options);
}

void ChatSession::keep(
    const std::string& text, const std::string& answer, const StepOutput& last
) {
  conversation_.model = model_.info().name;
  conversation_.messages.push_back({"user", text});
  conversation_.messages.push_back({"assistant", answer});
  history_ = last.cache_history;
}

void ChatSession::reset() {
  conversation_.messages.clear();
  history_.reset();
}

void ChatSession::take_up(
    Conversation conversation, std::optional<CacheHistory> history
) {
  if (history) model_.check(*history);
  conversation_ = std::move(conversation);
  history_ = std::move(history);
}

CacheHistory ChatSession::history(
    std::stop_token cancel, const std::function<void()>& waiting
) {
  if (conversation_.messages.empty()) {
    raise({Code::kInvalidArgument, "[chat.save] nothing was said yet"});
  }
  if (!history_) {
    StepOptions options;
    options.cancel = std::move(cancel);
    std::vector<Message> all = with_message(conversation_, {});
    all.pop_back();
    LogitsStream stream =
        generate_step(model_, model_.open_chat_prompt(all), options);
    while (!stream.wait_for(kTick)) waiting();
    stream.logits();  // or what it failed with
    history_ = stream.cache_history();
  }
  return *history_;
}

}  // namespace afterglow
