#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tool_calls.h"

namespace afterglow {

/// What a stretch of an answer is for.
enum class AnswerPart { kContent, kReasoning, kToolCall, kHeader };

/// The texts around a model's reasoning.
struct ReasoningMarks {
  std::string start, end;

  bool operator==(const ReasoningMarks&) const = default;
};

/// A text that ends one part of an answer and begins another.
struct AnswerMark {
  AnswerPart in;
  std::string text;
  AnswerPart then;

  bool operator==(const AnswerMark&) const = default;
};

/// How a model's answers are to be taken apart. To treat the text of calls as
/// content (a request's `tool_choice` is "none"), set `tool_calls` to null.
struct AnswerFormat {
  std::optional<ReasoningMarks> reasoning;
  const ToolCallFormat* tool_calls = nullptr;
  /// A family's further marks. Where one of them leads to a call, calls begin
  /// in no other part but reasoning.
  std::vector<AnswerMark> further;
  /// Where answers begin, whatever the prompt says.
  std::optional<AnswerPart> begins;

  /// All marks, as AnswerSplitter needs them.
  std::vector<AnswerMark> marks() const;

  /// A text that begins reasoning; empty when none does. Lives as long as this.
  std::string_view reasoning_mark() const;

  /// Where the answer to a rendered prompt begins: inside of reasoning when
  /// the prompt opens it and does not close it. Give only what the template
  /// put behind the messages: these may speak of marks, too.
  AnswerPart begins_after(std::string_view prompt) const;
};

/// Tells whether a text is one token of the vocabulary.
using HasToken = std::function<bool(std::string_view)>;

/// The format of a model's answers, recognised from its chat template and its
/// vocabulary as mlx_lm 0.32.2 does it, and calls in `<tool_call>` marks more
/// widely; all empty when none is known.
/// `tool_parser_type`, when not empty, names the format of calls instead.
/// Errors: kUnsupported for a `tool_parser_type` that is in no table.
Result<AnswerFormat> infer_answer_format(
    std::string_view chat_template,
    const HasToken& has_token,
    std::string_view tool_parser_type
);

/// The `tool_parser_type` in a tokenizer_config.json, or an empty text.
/// Errors: kCorrupt for wrong JSON.
Result<std::string> tool_parser_type_in_config(
    std::string_view tokenizer_config_json
);

}  // namespace afterglow
