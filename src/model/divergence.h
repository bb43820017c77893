#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/token.h"
#include "ops/numerics.h"

namespace afterglow {

struct TokenizerSource;

/// How a mode predicts a text, against f32 mode.
struct ModeQuality {
  Activations mode = Activations::kF32;
  double perplexity = 0;
  /// KL divergence of its next-token distribution from f32 mode's.
  double mean_divergence = 0;
  double largest_divergence = 0;
  /// Share of positions at which both think the same token most likely.
  double same_first = 0;

  /// As a share of f32 mode's, 0 where equal.
  double perplexity_change(const ModeQuality& exact) const {
    return perplexity / exact.perplexity - 1;
  }
};

struct DivergenceOptions {
  std::string model;  // a GGUF file or a model directory
  std::vector<Activations> modes;
  std::size_t window = 2048;  // tokens read with one KV
  int threads = 1;
};

struct DivergenceReport {
  std::string model_name;
  std::size_t windows = 0;
  std::size_t positions = 0;       // that have a next token in their window
  ModeQuality exact;               // f32 mode
  std::vector<ModeQuality> modes;  // in the order asked for
};

/// Turns a text into a loaded model's tokens.
using TextToTokens =
    std::function<Result<std::vector<Token>>(const TokenizerSource&)>;
/// Called with the positions done, and how many there are.
using TextProgress = std::function<void(std::size_t, std::size_t)>;

/// Lets all modes read the tokens side by side on the CPU backend, in windows
/// that begin with an empty KV; the last one may be shorter. Each mode keeps a
/// copy of the weights.
/// Errors: of loading; kInvalidArgument for a window of less than two tokens
/// or beyond the model's context, or fewer than two tokens.
Result<DivergenceReport> measure_divergence(
    const DivergenceOptions& options,
    const TextToTokens& tokens,
    const TextProgress& progress
);

}  // namespace afterglow
