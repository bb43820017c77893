#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/attention.h"
#include "kernels/linear/linear.h"

namespace afterglow {

/// The kernels of one instruction set. Every table gives the same bits for
/// the same arguments; "scalar" is their specification. Arrays need no
/// alignment and no room behind their end. None allocates, locks or calls the
/// system. Thread: all are pure functions of their arguments.
struct Kernels {
  const char* name;        // "scalar", "avx2", "neon", ...
  std::size_t token_tile;  // of activations.h
  std::size_t query_rows;  // most rows of an AttendPage
  /// The form in which linear_int wants inputs of so many levels.
  CodeForm (*code_form)(const PackedMatrix& weight, std::int32_t levels);

  /// y = e^x; 0 below -69, e^88 above 88. y may be x.
  void (*exp)(const float* x, std::size_t n, float* y);
  void (*tanh)(const float* x, std::size_t n, float* y);
  /// x += y.
  void (*add)(float* x, const float* y, std::size_t n);
  /// x = cap tanh(x / cap).
  void (*softcap)(float* x, std::size_t n, float cap);
  /// out = silu(gate) * up. out may be either input.
  void (*gate_silu
  )(const float* gate, const float* up, std::size_t n, float* out);
  /// The same with the tanh form of gelu.
  void (*gate_gelu
  )(const float* gate, const float* up, std::size_t n, float* out);
  /// The nearest f16; beyond its range the largest. NaN stays.
  void (*to_half)(const float* x, std::size_t n, std::uint16_t* y);
  /// y = x / sqrt(mean(x^2) + eps) * weight. y may be x.
  void (*rms_norm
  )(const float* x, const float* weight, float eps, std::size_t n, float* y);
  /// Turns pair i by the angle whose cosine and sine are given, in place.
  /// Pairs are (i, i + pairs), or (2i, 2i + 1) where interleaved.
  void (*rope
  )(float* x,
    const float* cosine,
    const float* sine,
    std::size_t pairs,
    bool interleaved);
  void (*quantize)(const QuantizeRow& row);
  /// Requires: form is what code_form() says for the weight.
  void (*linear_int)(const LinearInt& arguments);
  void (*linear_f32)(const LinearF32& arguments);
  void (*attend_page)(const AttendPage& arguments);
  /// Adds a page's partial to a row's total; one with sum 0 adds nothing.
  void (*attend_add
  )(const AttendTotal& total,
    float largest,
    float sum,
    const float* values,
    std::size_t v_dim);
  /// out = values / sum. Shape: [v_dim].
  void (*attend_finish
  )(const AttendTotal& total, std::size_t v_dim, float* out);
  /// The lowest index of the largest element. Requires: n > 0.
  std::size_t (*argmax)(const float* x, std::size_t n);
  /// Sum of e^(x - largest); log of it plus largest is the logsumexp.
  float (*exp_sum)(const float* x, std::size_t n, float largest);
};

}  // namespace afterglow
