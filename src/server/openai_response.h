#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "engine/request.h"
#include "server/choice.h"

namespace afterglow {

/// What all parts of one answer have in common.
struct AnswerIdentity {
  std::string id;            // "chatcmpl-..." or "cmpl-..."
  std::string model;         // the served model's name
  std::string fingerprint;   // of what computes: program and backend
  std::int64_t created = 0;  // Unix time in seconds
  bool chat = true;
};

struct Usage {
  std::size_t prompt_tokens = 0;
  std::size_t completion_tokens = 0;
  std::size_t cached_tokens = 0;
};

/// The JSON of responses, in OpenAI's shapes. `logprobs` is null when they
/// were not asked for; an empty finish_reason stands for "not yet".
namespace openai {

using json = nlohmann::ordered_json;

/// One piece of a stream. first: names the role, for chat.
json chunk(
    const AnswerIdentity& identity,
    std::size_t index,
    const ChoiceDelta& delta,
    bool first,
    std::string_view finish_reason,
    const json& logprobs
);
/// The piece behind them all, without choices, when include_usage was asked
/// for.
json usage_chunk(const AnswerIdentity& identity, const Usage& usage);

/// One of the choices of an answer without stream.
json whole_choice(
    const AnswerIdentity& identity,
    std::size_t index,
    const ChoiceDelta& all,
    std::string_view finish_reason,
    const json& logprobs
);
/// That answer.
json whole(const AnswerIdentity& identity, json choices, const Usage& usage);

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
