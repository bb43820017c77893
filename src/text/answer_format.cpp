#include "text/answer_format.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "text/tool_parsers/value.h"

namespace afterglow {
namespace {

using enum AnswerPart;

/// A template that holds both texts is of the format; the second may be empty.
struct TemplateRule {
  std::string_view format, first, second;
};

// The first that fits counts.
constexpr std::array kTemplateRules = {
    TemplateRule{"minimax_m2", "<minimax:tool_call>", ""},
    TemplateRule{"gemma4", "<|tool_call>", "<tool_call|>"},
    TemplateRule{"function_gemma", "<start_function_call>", ""},
    TemplateRule{"longcat", "<longcat_tool_call>", ""},
    TemplateRule{"glm47", "<arg_key>", ""},
    TemplateRule{"pythonic", "<|tool_list_start|>", ""},
    TemplateRule{"pythonic", "<|tool_call_start|>", ""},
    TemplateRule{"qwen3_coder", "<tool_call>\\n<function=", ""},
    TemplateRule{"qwen3_coder", "<tool_call>\n<function=", ""},
    TemplateRule{"kimi_k2", "<|tool_calls_section_begin|>", ""},
    TemplateRule{"minicpm5", "<function name=\"", "<param name=\""},
    TemplateRule{"mistral", "[TOOL_CALLS]", ""},
    TemplateRule{"muse_spark", "<atem:function_calls>", ""},
    TemplateRule{"json_tools", "<tool_call>", "tool_call.name"},
};

// What mlx_lm does not recognise, where nothing of the above, vocabulary
// included, fits: templates that build the same texts in other ways. A wrong
// guess shows a call as it was written, which is what no guess does.
constexpr std::array kWiderRules = {
    TemplateRule{"qwen3_coder", "<tool_call>", "<function="},
    TemplateRule{"json_tools", "<tool_call>", "</tool_call>"},
};

/// A vocabulary that holds all tokens is of the kind; empty ones don't count.
using Tokens = std::array<std::string_view, 4>;

constexpr Tokens kXtml = {"<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>"};
constexpr Tokens kPythonic = {"<|tool_call_start|>", "<|tool_call_end|>"};

struct ReasoningRule {
  Tokens tokens;
  std::string_view start, end;
};

constexpr std::array kReasoningRules = {
    ReasoningRule{{"<think>", "</think>"}, "<think>", "</think>"},
    ReasoningRule{
        {"<longcat_think>", "</longcat_think>"},
        "<longcat_think>",
        "</longcat_think>"},
    ReasoningRule{
        {"<|think:start|>", "<|think:end|>"},
        "<|think:start|>",
        "<|think:end|>"},
    ReasoningRule{
        {"<|channel>", "<channel|>"}, "<|channel>thought", "<channel|>"},
    ReasoningRule{kXtml, "<|open|>think<|sep|>", "<|close|>think<|sep|>"},
};

bool holds(const HasToken& has_token, const Tokens& tokens) {
  return std::ranges::all_of(tokens, [&](std::string_view token) {
    return token.empty() || has_token(token);
  });
}

std::string_view find_format(
    std::span<const TemplateRule> rules, std::string_view chat_template
) {
  for (const auto& rule : rules) {
    if (chat_template.find(rule.first) != chat_template.npos &&
        chat_template.find(rule.second) != chat_template.npos) {
      return rule.format;
    }
  }
  return "";
}

std::string_view infer_tool_calls(
    std::string_view chat_template, const HasToken& has_token
) {
  const auto format = find_format(kTemplateRules, chat_template);
  if (!format.empty()) {
    return format;
  }
  if (holds(has_token, kXtml)) {
    return "kimi_k3";
  }
  if (holds(has_token, kPythonic)) {
    return "pythonic";
  }
  return find_format(kWiderRules, chat_template);
}

std::vector<AnswerMark> xtml_marks() {
  return {
      {kContent, "<|open|>response<|sep|>", kContent},
      {kContent, "<|close|>response<|sep|>", kContent},
      {kContent, "<|close|>message<|sep|>", kContent},
  };
}

/// One answer holds several messages, each with a header that says to whom.
std::vector<AnswerMark> muse_spark_marks(std::string_view tool_call_start) {
  return {
      {kHeader, "to=self<|message|>", kReasoning},
      {kHeader, "to=user<|message|>", kContent},
      {kHeader, "to=commentary<|message|>", kContent},
      {kHeader, std::string(tool_call_start), kToolCall},
      {kReasoning, "<|eom|>", kHeader},
      {kContent, "<|eom|>", kHeader},
      {kContent, "<|eot|>", kContent},
  };
}

}  // namespace

std::vector<AnswerMark> AnswerFormat::marks() const {
  std::vector<AnswerMark> marks;
  if (reasoning) {
    marks.push_back({kContent, reasoning->start, kReasoning});
    marks.push_back({kReasoning, reasoning->end, kContent});
  }
  if (tool_calls != nullptr) {
    const std::string start(tool_calls->start);
    if (std::ranges::find(further, kToolCall, &AnswerMark::then) ==
        further.end()) {
      marks.push_back({kContent, start, kToolCall});
    }
    if (reasoning) {
      marks.push_back({kReasoning, start, kToolCall});
    }
    if (!tool_calls->end.empty()) {
      marks.push_back({kToolCall, std::string(tool_calls->end), kContent});
    }
  }
  for (const auto& mark : further) {
    if (tool_calls != nullptr || mark.then != kToolCall) {
      marks.push_back(mark);
    }
  }
  return marks;
}

std::string_view AnswerFormat::reasoning_mark() const {
  if (reasoning) {
    return reasoning->start;
  }
  const auto mark = std::ranges::find(further, kReasoning, &AnswerMark::then);
  return mark == further.end() ? std::string_view() : mark->text;
}

AnswerPart AnswerFormat::begins_after(std::string_view prompt) const {
  if (begins || !reasoning) {
    return begins.value_or(kContent);
  }
  const auto start = prompt.rfind(reasoning->start);
  const auto end = prompt.rfind(reasoning->end);
  const bool open = start != prompt.npos && (end == prompt.npos || start > end);
  return open ? kReasoning : kContent;
}

Result<AnswerFormat> infer_answer_format(
    std::string_view chat_template,
    const HasToken& has_token,
    std::string_view tool_parser_type
) {
  AnswerFormat format;
  for (const auto& rule : kReasoningRules) {
    if (holds(has_token, rule.tokens)) {
      format.reasoning = {std::string(rule.start), std::string(rule.end)};
      break;
    }
  }
  if (holds(has_token, kXtml)) {
    format.further = xtml_marks();
  }
  const auto name = tool_parser_type.empty()
                        ? infer_tool_calls(chat_template, has_token)
                        : tool_parser_type;
  if (name.empty()) {
    return format;
  }
  format.tool_calls = find_tool_call_format(name);
  if (format.tool_calls == nullptr) {
    return Error{
        Code::kUnsupported,
        "[text.answer_format] tokenizer_config.json names tool_parser_type \"" +
            std::string(name) +
            "\", which is not known; take that line out to have the format "
            "recognised from the chat template"};
  }
  if (name == "muse_spark") {
    format.begins = kHeader;
    const auto marks = muse_spark_marks(format.tool_calls->start);
    format.further.insert(format.further.end(), marks.begin(), marks.end());
  }
  return format;
}

Result<std::string> tool_parser_type_in_config(
    std::string_view tokenizer_config_json
) {
  const auto config = tool_parsers::parse_json(tokenizer_config_json);
  if (!config || !config->is_object()) {
    return Error{
        Code::kCorrupt,
        "[text.answer_format] tokenizer_config.json: not a JSON object"};
  }
  const auto type = config->find("tool_parser_type");
  if (type == config->end() || type->is_null()) {
    return std::string();
  }
  if (!type->is_string()) {
    return Error{
        Code::kCorrupt,
        "[text.answer_format] tokenizer_config.json: tool_parser_type is not "
        "a text"};
  }
  return type->get<std::string>();
}

}  // namespace afterglow
