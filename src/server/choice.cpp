#include "server/choice.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "server/random_id.h"

namespace afterglow {

Result<AnswerReading> answer_reading(
    const CompletionRequest& request, const AnswerFormat& format
) {
  AnswerReading reading;
  const ChatPrompt* chat = request.chat_prompt();
  if (chat == nullptr) return reading;  // text is not taken apart
  reading.format = format;
  reading.parallel_tool_calls = request.parallel_tool_calls;
  if (chat->tools_json.empty() || !request.call_tools) {
    reading.format.tool_calls = nullptr;
    return reading;
  }
  auto schemas = ToolSchemas::parse(chat->tools_json);
  if (!schemas.ok()) return schemas.error();
  reading.schemas = *std::move(schemas);
  return reading;
}

Choice::Choice(
    const CompletionRequest& request,
    const AnswerReading& reading,
    AnswerPart begins,
    const Tokenizer& tokenizer
)
    // Marks may be special tokens.
    : text_(tokenizer, request.stops, reading.format.marks().empty()),
      splitter_(reading.format, reading.schemas, begins),
      parallel_tool_calls_(reading.parallel_tool_calls) {
  if (request.logprobs) {
    logprobs_.emplace(tokenizer, request.chat(), request.top_logprobs > 0);
  }
}

void Choice::add(const TokenOut& token) {
  if (stopped()) return;  // computed before the cancel took effect
  ++tokens_;
  if (logprobs_) logprobs_->add(token);
  read(text_.push(token.token));
}

void Choice::read(std::string_view text) {
  if (!text.empty()) take_in(splitter_.push(text));
}

void Choice::take_in(std::vector<AnswerEvent> events) {
  for (AnswerEvent& event : events) {
    if (has_its_call_) return;
    switch (event.kind) {
      case AnswerEvent::Kind::kContent:
        delta_.content += event.text;
        break;
      case AnswerEvent::Kind::kReasoning:
        delta_.reasoning += event.text;
        break;
      case AnswerEvent::Kind::kToolCalls:
        for (ToolCall& call : event.calls) {
          if (has_its_call_) break;
          if (call.id.empty()) call.id = random_id("call_");
          delta_.tool_calls.push_back(std::move(call));
          ++calls_;
          has_its_call_ = !parallel_tool_calls_;
        }
        break;
      case AnswerEvent::Kind::kToolCallsFailed:
        // What the model wrote is not lost: the client may make sense of it.
        spdlog::warn("a tool call of the model cannot be read");
        spdlog::debug("it is: {}", event.error);
        delta_.content += event.text;
        break;
    }
  }
}

void Choice::finish(const Finished& finished) {
  const bool stopped_before = stopped();
  if (!has_its_call_) {
    read(text_.finish());
    take_in(splitter_.finish());
  }
  finish_reason_ = stopped() ? "stop" : to_string(finished.reason);
  if (finish_reason_ == "stop" && calls_ > 0 && !text_.stopped()) {
    finish_reason_ = "tool_calls";
  }
  timings_ = finished.timings;
  // Tokens computed past the end are nobody's.
  if (stopped_before) timings_->predicted_n = tokens_;
}

ChoiceDelta Choice::take() {
  delta_.calls_before = calls_told_;
  calls_told_ = calls_;
  return std::exchange(delta_, {});
}

nlohmann::ordered_json Choice::take_logprobs() {
  return logprobs_ ? logprobs_->take() : nullptr;
}

}  // namespace afterglow
