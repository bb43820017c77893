#pragma once

#include <cstdint>

#include "afterglow/export.h"

namespace afterglow {

/// A token id of the loaded model's vocabulary; valid ids are >= 0.
using Token = std::int32_t;

/// Stands for tokens of which only the KV is known: prompt-cache files of
/// mlx_lm do not say which tokens they hold.
inline constexpr Token kUnknownToken = -1;

/// A token and the natural logarithm of its probability.
struct TokenLogprob {
  Token token = 0;    ///< its id
  float logprob = 0;  ///< at most 0
};

/// Why an answer ended: the model ended it (or a stop string was met), the
/// limit of tokens was reached, or someone cut it.
enum class FinishReason : std::uint8_t {
  kStop,      ///< "stop"
  kLength,    ///< "length"
  kCancelled  ///< "cancelled"
};

/// "stop", "length", "cancelled".
AFTERGLOW_API const char* to_string(FinishReason reason);

/// What computes: own kernels on the CPU, or MLX (Metal, CUDA).
enum class Backend : std::uint8_t {
  kCpu,  ///< own kernels
  kMlx   ///< MLX
};

/// How the CPU backend rounds the inputs of a linear layer.
enum class Activations : std::uint8_t {
  kInt16,  ///< 15 bits per group of 32: near exact, the default
  kInt8,   ///< 8 bits per group of 32: llama.cpp's precision, fastest
  kF32,    ///< exact, KV in f32 too: the oracle's mode
};

/// "int16", "int8" or "f32".
AFTERGLOW_API const char* to_string(Activations mode);

}  // namespace afterglow
