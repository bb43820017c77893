#pragma once

#include <string>

#include "base/result.h"
#include "ops/ops.h"

namespace afterglow {

/// Llama 3.1's stretching of low frequencies.
struct Llama3Scaling {
  double factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  double original_context = 8192;
};

/// inv_freq[i] = base^(-2i / dims). Shape: [dims / 2].
Rope plain_rope(std::size_t dims, double base);

/// Positions divided by `factor`.
Rope linear_rope(std::size_t dims, double base, double factor);

/// Wavelengths above original_context / low_freq_factor are stretched by
/// `factor`, those below original_context / high_freq_factor are kept, between
/// them the two are blended.
/// Source: Llama 3.1's reference code, as in mlx_lm and transformers.
Rope llama3_rope(std::size_t dims, double base, const Llama3Scaling& scaling);

/// A number as text that differs for any other number.
std::string exact_text(double value);

/// A canonical text of all fields.
std::string describe_rope(const Rope& rope);

}  // namespace afterglow
