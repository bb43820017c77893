#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/token.h"
#include "kv/prompt_cache.h"

namespace afterglow {

/// How the next token is chosen; the names and meanings of
/// mlx_lm.sample_utils. A value of 0 (top_p also 1) switches a part off.
struct SamplingParams {
  double temperature = 0;  // 0: the most likely token
  double top_p = 1;
  std::size_t top_k = 0;
  double min_p = 0;
  std::size_t min_tokens_to_keep = 1;
  double xtc_probability = 0;
  double xtc_threshold = 0.1;
  std::vector<Token> xtc_special_tokens;
  double repetition_penalty = 0;
  std::size_t repetition_context_size = 20;
  double presence_penalty = 0;
  std::size_t presence_context_size = 20;
  double frequency_penalty = 0;
  std::size_t frequency_context_size = 20;
  std::vector<std::pair<Token, float>> logit_bias;
  /// Draws depend on (seed, absolute position) only. None: a random seed.
  std::optional<std::uint64_t> seed;

  /// Errors: kInvalidArgument naming the field and its range.
  Status validate(std::size_t vocab_size) const;
};

/// Where the prompt's tokens came from and how long the parts took.
/// cache_n == cache_ram_n + cache_disk_n; cache_n + prompt_n is the prompt's
/// length once it was read to its end.
struct Timings {
  std::size_t cache_n = 0;  // prompt tokens not computed
  std::size_t cache_ram_n = 0;
  std::size_t cache_disk_n = 0;
  std::size_t prompt_n = 0;  // prompt tokens computed, counted in each step
  std::size_t predicted_n = 0;
  double queue_ms = 0;    // from submit to the start of work
  double restore_ms = 0;  // reading and verifying blocks
  double prompt_ms = 0;   // from the end of restore to the first token
  double predicted_ms = 0;
  bool cache_store = true;  // whether the cache kept the prompt and answer
};

enum class FinishReason : std::uint8_t { kStop, kLength, kCancelled };
inline constexpr std::size_t kFinishReasons = 3;

/// "stop", "length", "cancelled".
const char* to_string(FinishReason reason);

/// The prompt was read up to `done` of `total` tokens.
struct Progress {
  std::size_t done = 0;
  std::size_t total = 0;
};

struct TokenLogprob {
  Token token = 0;
  float logprob = 0;
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
};

/// The last event of a request that failed.
struct Failed {
  Error error;
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

/// A prompt to continue.
struct GenerationRequest {
  std::vector<Token> prompt;  // not empty
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
  std::string label;  // names the request in the log
  std::shared_ptr<EventSink> sink;
};

using RequestId = std::uint64_t;

}  // namespace afterglow
