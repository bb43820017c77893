#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "engine/text_assembler.h"
#include "server/logprobs.h"
#include "server/openai_schema.h"
#include "text/answer_format.h"
#include "text/answer_splitter.h"
#include "text/tokenizer.h"

namespace afterglow {

/// Something new of a choice.
struct ChoiceDelta {
  std::string content;
  std::string reasoning;
  std::vector<ToolCall> tool_calls;  // each with an id
  std::size_t calls_before = 0;      // of this choice, told already

  bool empty() const {
    return content.empty() && reasoning.empty() && tool_calls.empty();
  }
};

/// How answers of a model are read for one request.
struct AnswerReading {
  AnswerFormat format;  // without what the request does not want told apart
  ToolSchemas schemas;
  bool parallel_tool_calls = true;  // false: an answer ends with its first call
};

/// Errors: kInvalidArgument for tools that are no JSON array.
Result<AnswerReading> answer_reading(
    const CompletionRequest& request, const AnswerFormat& format
);

/// One answer to a prompt on its way from tokens to content, reasoning and
/// tool calls.
/// Thread: one thread at a time.
class Choice {
 public:
  /// The tokenizer must outlive it. begins: PreparedPrompt's.
  Choice(
      const CompletionRequest& request,
      const AnswerReading& reading,
      AnswerPart begins,
      const Tokenizer& tokenizer
  );

  void add(const TokenOut& token);
  /// Requires: was not cancelled, or stopped().
  void finish(const Finished& finished);

  /// What came since the last call.
  ChoiceDelta take();
  /// Logprobs of what came since the last call; null when not asked for.
  nlohmann::ordered_json take_logprobs();

  /// True once nothing more is wanted: the engine's request can be cancelled.
  bool stopped() const { return text_.stopped() || has_its_call_; }

  // Once finished.
  bool finished() const { return timings_.has_value(); }
  const std::string& finish_reason() const { return finish_reason_; }
  const Timings& timings() const { return *timings_; }

 private:
  void read(std::string_view text);
  void take_in(std::vector<AnswerEvent> events);

  TextAssembler text_;
  AnswerSplitter splitter_;
  const bool parallel_tool_calls_;
  std::optional<LogprobsWriter> logprobs_;
  std::size_t tokens_ = 0;
  std::size_t calls_ = 0;
  std::size_t calls_told_ = 0;
  bool has_its_call_ = false;
  ChoiceDelta delta_;
  std::string finish_reason_;
  std::optional<Timings> timings_;
};

}  // namespace afterglow
