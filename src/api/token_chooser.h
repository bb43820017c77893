#pragma once

#include <vector>

#include "afterglow/generate.h"
#include "engine/request.h"
#include "engine/sampler.h"

namespace afterglow {

/// Chooses tokens on the caller's thread: what a request's parameters do, with
/// the caller's own functions in their places.
/// Thread: one thread at a time.
class TokenChooser {
 public:
  /// Whether the engine cannot choose by itself.
  static bool needed(const GenerateOptions& options) {
    return options.sampler || !options.logits_processors.empty();
  }

  /// Requires: the options' sampling is valid and they outlive it.
  explicit TokenChooser(const GenerateOptions& options)
      : options_(options), sampler_(options.sampling) {}

  /// `tokens` are prompt and answer so far. Shape: logits [vocab].
  /// Throws: what the functions throw; kInvalidArgument when the sampler names
  /// a token that is not in the vocabulary, or when the processors leave a
  /// logit that is not a number or no token to choose.
  TokenOut choose(const std::vector<Token>& tokens, std::vector<float> logits);

 private:
  const GenerateOptions& options_;
  Sampler sampler_;
};

}  // namespace afterglow
