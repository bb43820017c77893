#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/token.h"
#include "engine/request.h"
#include "server/api_error.h"
#include "server/json_body.h"

namespace afterglow {

/// What a request gets where it says nothing; from the command line.
struct RequestDefaults {
  double temperature = 0;
  double top_p = 1;
  std::size_t top_k = 0;
  double min_p = 0;
  std::size_t max_tokens = 512;
  /// Of the chat template; a request's chat_template_kwargs come before them.
  std::string chat_template_args;  // empty, or an object as JSON
};

/// The messages of POST /v1/chat/completions, content flattened to text.
struct ChatPrompt {
  std::string messages_json;
  std::string kwargs_json;  // empty, or an object
};

using TextPrompt = std::string;
using TokenPrompt = std::vector<Token>;

/// A validated request of either completion endpoint.
struct CompletionRequest {
  std::variant<ChatPrompt, TextPrompt, TokenPrompt> prompt;
  SamplingParams sampling;
  std::vector<std::string> stops;
  std::size_t max_tokens = 512;
  bool stream = false;
  bool include_usage = false;
  bool logprobs = false;
  std::size_t top_logprobs = 0;
  bool cache_read = true;
  bool cache_store = true;
  std::string cache_key;  // prompt_cache_key

  bool chat() const { return std::holds_alternative<ChatPrompt>(prompt); }
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
