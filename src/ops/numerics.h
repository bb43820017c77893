#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace afterglow {

/// Changes whenever the bits of KV or logits of the CPU backend do. Part of
/// every cached block's identity.
inline constexpr std::uint32_t kNumerics = 1;

/// How the CPU backend rounds the inputs of a linear layer.
enum class Activations : std::uint8_t {
  kInt16,  // 15 bits per group of 32: near exact, the default
  kInt8,   // 8 bits per group of 32: llama.cpp's precision, fastest
  kF32,    // exact, KV in f32 too: the oracle's mode
};

/// "int16", "int8" or "f32".
const char* to_string(Activations mode);
Result<Activations> parse_activations(const std::string& text);

}  // namespace afterglow
