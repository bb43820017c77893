#include "cli/chat/chat_loop.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <utility>

#include "api/progress_bar.h"
#include "api/raise.h"
#include "cli/chat/chat_input.h"
#include "cli/chat/saved_chat.h"
#include "cli/human.h"

namespace afterglow {
namespace {

using namespace std::chrono_literals;

constexpr auto kTick = 50ms;

int status_of(int signal) {
  return 128 + signal;
}

}  // namespace

int ChatLoop::run() {
  while (!status_) {
    UserLine line = lines_.read();
    switch (line.kind) {
      case UserLine::Kind::kLine:
        act(line.text);
        break;
      case UserLine::Kind::kInterrupt:
        break;
      case UserLine::Kind::kEnd:
        status_ = 0;
        break;
      case UserLine::Kind::kSignal:
        status_ = status_of(line.signal);
        break;
    }
  }
  return *status_;
}

void ChatLoop::act(const std::string& line) {
  const ChatInput input = parse_chat_input(line);
  if (input.kind == ChatInput::Kind::kNothing) return;
  try {
    lines_.remember(line);
    switch (input.kind) {
      case ChatInput::Kind::kNothing:
        break;
      case ChatInput::Kind::kMessage:
        answer(input.text);
        break;
      case ChatInput::Kind::kReset:
        session_.reset();
        screen_.note("A new conversation begins.");
        break;
      case ChatInput::Kind::kSave:
        save(input.text);
        break;
      case ChatInput::Kind::kLoad:
        load(input.text);
        break;
      case ChatInput::Kind::kHelp:
        screen_.say(chat_help());
        break;
      case ChatInput::Kind::kExit:
        status_ = 0;
        break;
      case ChatInput::Kind::kWrong:
        screen_.error(input.text);
        break;
    }
  } catch (const Exception& exception) {
    screen_.error(exception.what());
  } catch (const std::exception& exception) {
    screen_.error(std::string("[chat] it went wrong: ") + exception.what());
  }
}

void ChatLoop::answer(const std::string& text) {
  cut_ = {};
  StepOutput last;
  std::string said;
  {
    ProgressBar bar;
    TextStream stream = session_.ask(
        text,
        cut_.get_token(),
        [&bar](std::size_t done, std::size_t total) {
          done < total ? bar.show(done, total) : bar.clear();
        }
    );
    said = print(stream, last);
  }
  screen_.end_answer();
  if (said.empty() && cut_.stop_requested()) {
    screen_.note("Cut before the answer began; your message is not kept.");
    return;
  }
  session_.keep(text, said, last);
  if (said.empty()) screen_.note("The model said nothing.");
  explain_end(last);
  if (statistics_) screen_.note(answer_statistics(last));
  keep_last();
}

std::string ChatLoop::print(TextStream& stream, StepOutput& last) {
  std::string said;
  for (;;) {
    check_signals();
    if (!stream.wait_for(kTick)) continue;
    std::optional<StepOutput> output = stream.next();
    if (!output) return said;
    // What was under way when the answer was cut is neither shown nor kept.
    if (!cut_.stop_requested()) {
      said += output->text;
      if (!screen_.answer(output->text)) {
        status_ = 1;
        cut_.request_stop();
      }
    }
    last = *std::move(output);
  }
}

void ChatLoop::check_signals() {
  const int number = signals_.take(0ms);
  if (number == SIGTSTP) {
    signals_.suspend();
  } else if (number != 0 && number != SIGWINCH) {
    // A second one means: at once. What is on disk stays whole.
    if (cut_.stop_requested()) std::_Exit(status_of(number));
    cut_.request_stop();
    if (number != SIGINT) status_ = status_of(number);
  }
}

void ChatLoop::explain_end(const StepOutput& last) {
  if (last.finish_reason == FinishReason::kCancelled) {
    screen_.note("Cut; what was said so far stays in the conversation.");
  } else if (last.finish_reason == FinishReason::kLength) {
    const std::size_t most = session_.model().info().context_length;
    const bool full = last.prompt_tokens + last.generation_tokens >= most;
    screen_.note(
        full ? "The answer ends here: the context of " + std::to_string(most) +
                   " tokens is full. Keep the conversation with /save FILE, "
                   "or begin anew with /reset."
             : "The answer ends here, after --max-tokens " +
                   std::to_string(last.generation_tokens) + "."
    );
  }
}

void ChatLoop::keep_last() {
  if (last_ == nullptr) return;
  const Status written = last_->write(session_.conversation());
  if (!written.ok()) {
    screen_.error(
        "[chat.keep] --continue will not find this answer: " +
        written.error().message
    );
  }
}

void ChatLoop::save(const std::string& file) {
  cut_ = {};
  const CacheHistory history =
      session_.history(cut_.get_token(), [this] { check_signals(); });
  save_chat(file, {session_.conversation(), history});
  screen_.note(
      "Saved: " +
      human_count(session_.conversation().messages.size(), "message") + ", " +
      human_count(history.size(), "token") + "."
  );
}

void ChatLoop::load(const std::string& file) {
  SavedChat chat = load_chat(file);
  session_.take_up(std::move(chat.conversation), std::move(chat.history));
  screen_.note(
      "Loaded: " +
      human_count(session_.conversation().messages.size(), "message") + ".\n" +
      conversation_summary(session_.conversation())
  );
}

void ChatLoop::take_up_last() {
  auto found = require(last_->read());
  if (!found) {
    screen_.note("There is no chat to continue here; a new one begins.");
    return;
  }
  const std::string when = human_time(found->written_at_ns);
  session_.take_up(std::move(found->conversation), {});
  const Conversation& conversation = session_.conversation();
  const bool other = conversation.model != session_.model().info().name;
  screen_.note(
      "The chat of " + when +
      " goes on: " + human_count(conversation.messages.size(), "message") +
      (other ? ", with another model than " + conversation.model : "") + ".\n" +
      conversation_summary(conversation)
  );
}

}  // namespace afterglow
