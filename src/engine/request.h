#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "afterglow/sampling.h"
#include "afterglow/types.h"
#include "base/result.h"
#include "base/token.h"
#include "engine/kv_history.h"
#include "kv/prompt_cache.h"

namespace afterglow {

/// A parameter that is out of its range.
struct SamplingFault {
  const char* parameter;  // its name in SamplingParams
  std::string message;    // names it and its range
};

/// The first that is out of its range; nothing: all are within.
std::optional<SamplingFault> find_fault(
    const SamplingParams& params, std::size_t vocab_size
);

/// Errors: kInvalidArgument with the message of the first fault.
Status validate(const SamplingParams& params, std::size_t vocab_size);

/// Where the prompt's tokens came from and how long the parts took.
/// cache_n == cache_ram_n + cache_disk_n; cache_n + prompt_n is the prompt's
/// length once it was read to its end.
struct Timings {
  std::size_t cache_n = 0;  // prompt tokens not computed
  std::size_t cache_ram_n = 0;
  std::size_t cache_disk_n = 0;
  std::size_t prompt_n = 0;  // prompt tokens computed, counted in each step
  std::size_t predicted_n = 0;
  double queue_ms = 0;    // from the request's arrival to the start of work
  double restore_ms = 0;  // reading and verifying blocks
  double prompt_ms = 0;   // from the end of restore to the first token
  double predicted_ms = 0;
  bool cache_store = true;  // whether the cache kept the prompt and answer
};

inline constexpr std::size_t kFinishReasons = 3;

/// The prompt was read up to `done` of `total` tokens, `cached` of which were
/// not computed. For one that waits: what another has read of it so far.
struct Progress {
  std::size_t done = 0;
  std::size_t total = 0;
  std::size_t cached = 0;
};

/// One generated token. A stop token is not sent.
struct TokenOut {
  Token token = 0;
  float logprob = 0;                       // when logprobs were asked for
  std::vector<TokenLogprob> top_logprobs;  // most likely first
};

/// The last event of a request that did not fail.
struct Finished {
  FinishReason reason = FinishReason::kStop;
  Timings timings;
  std::optional<Token> stop_token;  // the one that ended the answer
  KvHistoryPtr history;             // when asked for
};

/// The last event of a request that failed.
struct Failed {
  Error error;
  KvHistoryPtr history;  // of what had succeeded, when asked for
};

using Event = std::variant<Progress, TokenOut, Finished, Failed>;

/// Where a request's events go.
class EventSink {
 public:
  virtual ~EventSink() = default;
  /// Takes one event. Thread: called from the generation thread (or, when the
  /// request is refused late, from the canceller's), one call at a time; must
  /// neither block nor call back into the engine. False: nobody listens any
  /// more (left or lagging); the request is cut and gets no further event.
  virtual bool send(Event event) = 0;
};

/// Who chooses a request's tokens in place of its SamplingParams. For each the
/// request waits, while others go on, until Engine::choose or its end.
class LogitsSink {
 public:
  virtual ~LogitsSink() = default;
  /// Takes the logits behind all tokens so far, as the model gave them.
  /// Shape: [vocab]. Thread: as EventSink::send. False: nobody listens.
  virtual bool send_logits(std::vector<float> logits) = 0;
};

/// Requests of one group, the choices of one answer say, share the KV of what
/// their prompts have in common while they run, whatever cache_read and
/// cache_store say. Which group it is, only its address tells.
struct ShareGroup {};

/// A prompt to continue.
struct GenerationRequest {
  /// Not empty. kUnknownToken where history has it, too.
  std::vector<Token> prompt;
  std::vector<Boundary> boundaries;
  SamplingParams sampling;
  std::size_t max_tokens = 512;
  std::vector<Token> stop_tokens;
  bool logprobs = false;
  std::size_t top_logprobs = 0;
  bool cache_read = true;   // false: the whole prompt is computed
  bool cache_store = true;  // false: nothing is kept, in memory or on disk
  /// Requests of different namespaces never share cached tokens.
  std::string cache_namespace;
  std::shared_ptr<const ShareGroup> share_group;  // none: its own
  /// Whose request it is: the API key, or else the peer's address. Clients
  /// take turns, however many requests one of them has waiting.
  std::string client;
  std::string label;  // names the request in the log
  /// When it came: before it was tokenized.
  std::chrono::steady_clock::time_point arrived =
      std::chrono::steady_clock::now();
  /// KV that may be continued where its tokens and the prompt's agree.
  KvHistoryPtr history;
  bool return_history = false;              // Finished tells tokens and KV
  std::shared_ptr<LogitsSink> logits_sink;  // none: the engine samples
  std::shared_ptr<EventSink> sink;
};

/// How many tokens a request can take of the history it came with.
inline std::size_t shared_with_history(const GenerationRequest& request) {
  return request.history == nullptr
             ? 0
             : shared_prefix(request.prompt, request.history->tokens);
}

using RequestId = std::uint64_t;

}  // namespace afterglow
