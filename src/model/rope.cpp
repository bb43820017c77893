#include "model/rope.h"

#include <cmath>
#include <cstdio>
#include <numbers>

namespace afterglow {

Rope plain_rope(std::size_t dims, double base) {
  Rope rope;
  for (std::size_t i = 0; i < dims / 2; ++i) {
    rope.inv_freq.push_back(
        std::pow(base, -2.0 * static_cast<double>(i) / double(dims))
    );
  }
  return rope;
}

Rope linear_rope(std::size_t dims, double base, double factor) {
  Rope rope = plain_rope(dims, base);
  for (double& frequency : rope.inv_freq) {
    frequency /= factor;
  }
  return rope;
}

Rope llama3_rope(std::size_t dims, double base, const Llama3Scaling& scaling) {
  Rope rope = plain_rope(dims, base);
  const double long_wave = scaling.original_context / scaling.low_freq_factor;
  const double short_wave = scaling.original_context / scaling.high_freq_factor;
  for (double& frequency : rope.inv_freq) {
    const double wave = 2 * std::numbers::pi / frequency;
    if (wave > long_wave) {
      frequency /= scaling.factor;
    } else if (wave >= short_wave) {
      const double kept =
          (scaling.original_context / wave - scaling.low_freq_factor) /
          (scaling.high_freq_factor - scaling.low_freq_factor);
      frequency *= (1 - kept) / scaling.factor + kept;
    }
  }
  return rope;
}

std::string exact_text(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%a", value);
  return text;
}

std::string describe_rope(const Rope& rope) {
  std::string text = "rope";
  for (double frequency : rope.inv_freq) {
    text += ' ' + exact_text(frequency);
  }
  return text + " scale " + exact_text(rope.scale) +
         (rope.interleaved ? " interleaved" : " halves");
}

}  // namespace afterglow
