#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/answer_format.h"
#include "text/stop_matcher.h"
#include "text/tool_calls.h"

namespace afterglow {

/// Something a reader of an answer is told.
struct AnswerEvent {
  enum class Kind {
    kContent,          // text to show
    kReasoning,        // text of the model's thinking
    kToolCalls,        // a call's text is complete: it holds `calls`
    kToolCallsFailed,  // a call's text is complete, but cannot be read
  };
  Kind kind;
  /// Never empty for kContent and kReasoning. For kToolCallsFailed all that the
  /// model wrote, marks included.
  std::string text = {};
  std::vector<ToolCall> calls = {};  // kToolCalls: at least one
  std::string error = {};            // kToolCallsFailed: why

  bool operator==(const AnswerEvent&) const = default;
};

/// Takes a streamed answer apart into content, reasoning and tool calls. What
/// comes out, neighbouring texts of one kind joined, does not depend on how
/// the answer is cut. No part of a mark is ever given out as text unless it
/// turns out to be none; only what may still become one is held back, and
/// texts are cut between characters when the pieces are.
///
/// Requires: pieces with special tokens in them (`Detokenizer` with
/// skip_special false, the end-of-turn token left out), since marks may be
/// such; stop strings looked for before (`StopMatcher`), in the whole text.
///
/// As mlx_lm.server does, white space around marks stays text, a call may
/// begin inside reasoning and ends it, and an answer that ends within a call
/// ends the call. Unlike there, the text of an unfinished mark is given out
/// also when the model stopped by itself.
/// Thread: one thread at a time.
class AnswerSplitter {
 public:
  /// `begins` comes from AnswerFormat::begins_after.
  AnswerSplitter(
      const AnswerFormat& format, ToolSchemas schemas, AnswerPart begins
  );

  /// What this piece makes certain.
  std::vector<AnswerEvent> push(std::string_view piece);

  /// What was held back, when the answer is over, for whatever reason; a call
  /// without its end mark is complete now. Nothing may be pushed after.
  std::vector<AnswerEvent> finish();

 private:
  struct Part {
    std::vector<AnswerMark> marks;
    StopMatcher fresh{{}};
  };

  Part& part(AnswerPart which) {
    return parts_[static_cast<std::size_t>(which)];
  }
  void enter(AnswerPart which);
  void add_text(std::string_view text, std::vector<AnswerEvent>& events);
  void end_call(std::string_view mark, std::vector<AnswerEvent>& events);

  const ToolCallFormat* format_;
  ToolSchemas schemas_;
  Part parts_[4];
  AnswerPart now_;
  StopMatcher matcher_{{}};
  std::string call_text_;
};

}  // namespace afterglow
