#include "text/answer_splitter.h"

#include <utility>

#include "base/check.h"

namespace afterglow {

using enum AnswerPart;
using Kind = AnswerEvent::Kind;

AnswerSplitter::AnswerSplitter(
    const AnswerFormat& format, ToolSchemas schemas, AnswerPart begins
)
    : format_(format.tool_calls), schemas_(std::move(schemas)) {
  for (auto& mark : format.marks()) {
    part(mark.in).marks.push_back(std::move(mark));
  }
  for (auto& part : parts_) {
    std::vector<std::string> texts;
    for (const auto& mark : part.marks) {
      texts.push_back(mark.text);
    }
    part.fresh = StopMatcher(std::move(texts));
  }
  CHECK(begins != kToolCall, "an answer cannot begin within a call");
  enter(begins);
}

void AnswerSplitter::enter(AnswerPart which) {
  now_ = which;
  matcher_ = part(which).fresh;
}

std::vector<AnswerEvent> AnswerSplitter::push(std::string_view piece) {
  std::vector<AnswerEvent> events;
  while (true) {
    add_text(matcher_.push(piece), events);
    if (!matcher_.stopped()) {
      return events;
    }
    piece.remove_prefix(matcher_.consumed());
    const auto& mark = part(now_).marks[*matcher_.matched()];
    if (now_ == kToolCall) {
      end_call(mark.text, events);
    }
    enter(mark.then);
  }
}

std::vector<AnswerEvent> AnswerSplitter::finish() {
  std::vector<AnswerEvent> events;
  add_text(matcher_.flush(), events);
  if (now_ == kToolCall && call_text_.empty()) {
    events.push_back({
        .kind = Kind::kToolCallsFailed,
        .text = std::string(format_->start),
        .error = "[text.tool_call] the answer ended where a call began",
    });
  } else if (now_ == kToolCall) {
    end_call("", events);
  }
  enter(kContent);
  return events;
}

void AnswerSplitter::add_text(
    std::string_view text, std::vector<AnswerEvent>& events
) {
  if (now_ == kToolCall) {
    call_text_ += text;
    return;
  }
  if (text.empty() || now_ == kHeader) {
    return;
  }
  const auto kind = now_ == kReasoning ? Kind::kReasoning : Kind::kContent;
  if (!events.empty() && events.back().kind == kind) {
    events.back().text += text;
  } else {
    events.push_back({.kind = kind, .text = std::string(text)});
  }
}

void AnswerSplitter::end_call(
    std::string_view mark, std::vector<AnswerEvent>& events
) {
  const auto text = std::exchange(call_text_, {});
  auto parsed = format_->parse(text, schemas_);
  if (parsed) {
    events.push_back({.kind = Kind::kToolCalls, .calls = *std::move(parsed)});
    return;
  }
  events.push_back({
      .kind = Kind::kToolCallsFailed,
      .text = std::string(format_->start) + text + std::string(mark),
      .error = parsed.error().message,
  });
}

}  // namespace afterglow
