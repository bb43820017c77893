#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "afterglow/cache_history.h"
#include "afterglow/export.h"
#include "afterglow/model.h"
#include "afterglow/sampling.h"
#include "afterglow/types.h"

namespace afterglow {

/// Chooses a token by its log-probability. Shape: [vocab_size].
using TokenSampler = std::function<Token(std::span<const float> logprobs)>;

/// Changes logits before sampling. `tokens` are prompt and answer so far, with
/// kUnknownToken where a file of mlx_lm is continued.
/// Shape: logits [vocab_size].
using LogitsProcessor =
    std::function<void(std::span<const Token> tokens, std::span<float> logits)>;

/// How an answer is made and what is told of it.
struct GenerateOptions {
  std::size_t max_tokens =
      256;                  ///< at most; the model's context limits it, too
  SamplingParams sampling;  ///< how tokens are chosen
  /// In place of sampling's draw; its penalties and biases still hold.
  TokenSampler sampler;
  /// Called in this order, after sampling's penalties and biases. They may
  /// forbid tokens by -infinity, but not all.
  std::vector<LogitsProcessor> logits_processors;
  std::vector<std::string> stop;   ///< texts that end the answer, left out
  std::vector<Token> stop_tokens;  ///< besides the model's own
  std::optional<CacheHistory> cache_history;  ///< what may be continued
  bool return_cache = false;                  ///< outputs have a cache_history
  bool logprobs = false;         ///< outputs have the token's logprob
  std::size_t top_logprobs = 0;  ///< how many; needs logprobs
  /// A progress bar while the prompt is read and statistics at the end, on
  /// stderr.
  bool verbose = false;
  /// Tokens of the prompt that are read, and all. Called by the thread that
  /// asks for the next output.
  std::function<void(std::size_t done, std::size_t total)>
      prompt_progress_callback;
  std::stop_token cancel;  ///< ends the answer soon
};

/// What one step of a generation gave. The last one has a finish_reason.
struct StepOutput {
  std::string text;  ///< the next piece; may be empty
  /// The token; one that ended the answer, too. kUnknownToken: none (the
  /// answer was cut).
  Token token = kUnknownToken;
  float logprob = 0;                          ///< with options.logprobs
  std::vector<TokenLogprob> top_logprobs;     ///< most likely first
  std::size_t prompt_tokens = 0;              ///< all
  std::size_t cached_tokens = 0;              ///< of these, not computed
  double prompt_tps = 0;                      ///< computed tokens a second
  std::size_t generation_tokens = 0;          ///< so far, no stop token
  double generation_tps = 0;                  ///< tokens a second
  std::uint64_t peak_memory = 0;              ///< bytes, of the process
  std::optional<FinishReason> finish_reason;  ///< of the last output
  /// With options.return_cache, unless it was cut before it had begun.
  std::optional<CacheHistory> cache_history;
};

/// A running generation: a range of StepOutput, to be walked once. Destroying
/// it ends the generation.
/// Thread: one thread at a time.
class AFTERGLOW_API TextStream {
 public:
  /// An input iterator.
  class iterator {
   public:
    /// @cond
    using iterator_category = std::input_iterator_tag;
    using value_type = StepOutput;
    using difference_type = std::ptrdiff_t;
    using pointer = StepOutput*;
    using reference = StepOutput&;

    iterator() = default;
    explicit iterator(TextStream& stream) : stream_(&stream) { ++*this; }
    reference operator*() const { return *stream_->current_; }
    pointer operator->() const { return &*stream_->current_; }
    iterator& operator++() {
      stream_->current_ = stream_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const {
      return !stream_->current_;
    }
    /// @endcond

   private:
    TextStream* stream_ = nullptr;
  };

  /// Throws as next().
  iterator begin() { return iterator(*this); }
  /// No output is left.
  std::default_sentinel_t end() const { return {}; }

  /// Waits for the next output; none after the last. Throws: what the
  /// generation failed with (kExhausted where memory does not suffice), what a
  /// callback threw. That ends it.
  std::optional<StepOutput> next();
  /// True: next() returns without waiting. Does what next() does meanwhile,
  /// calls callbacks and throws, too.
  bool wait_for(std::chrono::milliseconds at_most);

  /// @cond
  class Impl;
  explicit TextStream(std::unique_ptr<Impl> impl);
  ~TextStream();
  TextStream(TextStream&& other) noexcept;
  TextStream& operator=(TextStream&& other) noexcept;
  /// @endcond

 private:
  std::unique_ptr<Impl> impl_;
  std::optional<StepOutput> current_;
};

/// Continues the prompt, token by token.
/// Throws: kInvalidArgument (an empty prompt, one that the context cannot
/// hold, options out of range, a history of another model), kUnsupported (the
/// model has no histories), kCorrupt (a history's values do not fit the model),
/// kOverloaded, kUnavailable.
AFTERGLOW_API TextStream stream_generate(
    const Model& model,
    const Prompt& prompt,
    const GenerateOptions& options = {}
);

/// The whole answer: all texts joined, all else as of the last output.
/// With options.verbose the text goes to stdout as it comes.
/// Throws: as stream_generate and TextStream::next.
AFTERGLOW_API StepOutput generate(
    const Model& model,
    const Prompt& prompt,
    const GenerateOptions& options = {}
);

/// What generate_step takes of GenerateOptions.
struct StepOptions {
  /// At most so many are accepted. Memory is set aside for all of them.
  std::size_t max_tokens = 256;
  std::optional<CacheHistory> cache_history;  ///< what may be continued
  /// As in GenerateOptions.
  std::function<void(std::size_t done, std::size_t total)>
      prompt_progress_callback;
  std::stop_token cancel;  ///< ends it
};

/// Logits for those who choose tokens themselves. Destroying it ends it.
/// Thread: one thread at a time.
class AFTERGLOW_API LogitsStream {
 public:
  /// The logits behind all tokens so far: waits until they are computed. They
  /// belong to the caller, who may change them and keep them.
  /// Shape: [vocab_size]. Throws: what computing failed with, what a callback
  /// threw (which ends it); kCancelled; kInvalidArgument when max_tokens are
  /// accepted or the context is full.
  std::shared_ptr<std::vector<float>> logits();
  /// As TextStream::wait_for, for logits().
  bool wait_for(std::chrono::milliseconds at_most);
  /// Continues with that token. Requires: logits() was called since the last.
  /// Throws: kInvalidArgument for a token that the vocabulary has not.
  void accept(Token token);

  /// Prompt and accepted tokens.
  const std::vector<Token>& tokens() const;
  /// Tokens of the prompt that were not computed. 0 before logits().
  std::size_t cached_tokens() const;
  /// All tokens whose logits were there: all but one accepted since.
  /// Throws: kInvalidArgument before the first logits().
  CacheHistory cache_history() const;

  /// @cond
  class Impl;
  explicit LogitsStream(std::unique_ptr<Impl> impl);
  ~LogitsStream();
  LogitsStream(LogitsStream&& other) noexcept;
  LogitsStream& operator=(LogitsStream&& other) noexcept;
  /// @endcond

 private:
  std::unique_ptr<Impl> impl_;
};

/// Reads the prompt and gives logits, step by step. Throws: as
/// stream_generate.
AFTERGLOW_API LogitsStream generate_step(
    const Model& model, const Prompt& prompt, const StepOptions& options = {}
);

}  // namespace afterglow
