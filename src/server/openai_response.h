#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "engine/request.h"

namespace afterglow {

/// What all parts of one answer have in common.
struct AnswerIdentity {
  std::string id;            // "chatcmpl-..." or "cmpl-..."
  std::string model;         // the served model's name
  std::int64_t created = 0;  // Unix time in seconds
  bool chat = true;
};

struct Usage {
  std::size_t prompt_tokens = 0;
  std::size_t completion_tokens = 0;
  std::size_t cached_tokens = 0;
};

/// The JSON of responses, in OpenAI's shapes. `logprobs` is null when they
/// were not asked for.
namespace openai {

using json = nlohmann::ordered_json;

/// One piece of a stream. first: names the role, for chat.
json delta(
    const AnswerIdentity& identity,
    std::string_view text,
    bool first,
    const json& logprobs
);
/// The piece that carries the finish reason.
json last_delta(
    const AnswerIdentity& identity,
    bool first,
    std::string_view finish_reason,
    const json& logprobs
);
/// The piece behind it, without choices, when include_usage was asked for.
json usage_chunk(const AnswerIdentity& identity, const Usage& usage);
/// The whole answer of a request without stream.
json whole(
    const AnswerIdentity& identity,
    std::string_view text,
    std::string_view finish_reason,
    const json& logprobs,
    const Usage& usage
);
/// llama-server's names, and which tier served what. Units: milliseconds.
json timings(const Timings& timings);

/// Text of an event stream (HTML standard, "server-sent events").
std::string event(const json& data);
std::string comment(std::string_view text);
inline constexpr std::string_view kDone = "data: [DONE]\n\n";

/// JSON as one line; bytes that are no UTF-8 become U+FFFD.
std::string dump(const json& value);

}  // namespace openai
}  // namespace afterglow
