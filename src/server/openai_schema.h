#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/token.h"
#include "engine/engine.h"
#include "server/api_error.h"
#include "server/json_body.h"

namespace afterglow {

/// Of max_tokens and its like: as far as the context goes.
constexpr std::int64_t kNoTokenLimit = -1;

/// What a request gets where it says nothing; from the command line.
struct RequestDefaults {
  double temperature = 0;
  double top_p = 1;
  std::size_t top_k = 0;
  double min_p = 0;
  std::int64_t max_tokens = 512;  // kNoTokenLimit: as far as the context goes
  /// Of the chat template; a request's chat_template_kwargs come before them.
  std::string chat_template_args;  // empty, or an object as JSON
};

/// The messages of POST /v1/chat/completions, content flattened to text.
struct ChatPrompt {
  std::string messages_json;
  std::string kwargs_json;        // empty, or an object
  std::string tools_json;         // empty, or an array
  std::string role_mapping_json;  // empty, or an object of texts

  /// Valid while this lives.
  ChatInput input() const {
    return {messages_json, tools_json, kwargs_json, role_mapping_json};
  }
};

using TextPrompt = std::string;
using TokenPrompt = std::vector<Token>;
using AnyPrompt = std::variant<ChatPrompt, TextPrompt, TokenPrompt>;

/// A validated request of either completion endpoint.
struct CompletionRequest {
  std::vector<AnyPrompt> prompts;  // one for chat, else one or more
  std::size_t n = 1;               // choices for each
  SamplingParams sampling;
  std::vector<std::string> stops;
  std::size_t max_tokens = 512;  // the largest number there is: no limit
  bool stream = false;
  bool include_usage = false;
  bool logprobs = false;
  std::size_t top_logprobs = 0;
  bool cache_read = true;
  bool cache_store = true;
  std::string cache_key;   // prompt_cache_key
  bool call_tools = true;  // false: calls are content
  bool parallel_tool_calls = true;

  /// Null for completions.
  const ChatPrompt* chat_prompt() const {
    return std::get_if<ChatPrompt>(&prompts.front());
  }
  bool chat() const { return chat_prompt() != nullptr; }
  std::size_t choices() const { return prompts.size() * n; }
};

/// Parses and validates a body. Pure: knows no model, so token ids and the
/// length are checked by the engine. Every field is used, refused by name, or
/// documented as without effect in docs/http-api.md.
/// Source: https://platform.openai.com/docs/api-reference and mlx_lm.server.
std::variant<CompletionRequest, ApiError> parse_chat_request(
    std::string_view body,
    const RequestDefaults& defaults,
    const JsonLimits& limits = {}
);
std::variant<CompletionRequest, ApiError> parse_text_request(
    std::string_view body,
    const RequestDefaults& defaults,
    const JsonLimits& limits = {}
);

}  // namespace afterglow
