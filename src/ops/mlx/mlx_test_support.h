#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/linear/matrix_source.h"
#include "ops/ops.h"

namespace afterglow::mlx_test {

using Row = std::vector<double>;
using Matrix = std::vector<Row>;  // [rows][cols]

/// Random numbers from a fixed seed.
class Dice {
 public:
  explicit Dice(std::uint32_t seed) : engine_(seed) {}
  float normal(float deviation = 1.0F) {
    return std::normal_distribution<float>(0.0F, deviation)(engine_);
  }
  int below(int n) { return static_cast<int>(engine_() % unsigned(n)); }

 private:
  std::mt19937 engine_;
};

/// The bits of a value that the type holds exactly: the low 16 are cut.
inline float rounded(float value, ElementType type) {
  if (type == ElementType::kF32) {
    return value;
  }
  // 8 bits of mantissa and a small exponent fit f16 and bf16 alike.
  const float unit = std::ldexp(1.0F, std::ilogb(value) - 6);
  return std::trunc(value / unit) * unit;
}

inline void put_element(ElementType type, float value, std::byte* to) {
  if (type == ElementType::kF32) {
    std::memcpy(to, &value, 4);
  } else if (type == ElementType::kBF16) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, 4);
    const auto half = static_cast<std::uint16_t>(bits >> 16);
    std::memcpy(to, &half, 2);
  } else {
    const auto half = static_cast<_Float16>(value);
    std::memcpy(to, &half, 2);
  }
}

/// What a random matrix is made of; as in MatrixSource.
struct Format {
  ElementType type = ElementType::kF32;
  int bits = 0;
  std::size_t group = 0;
  bool signed_codes = false;
  bool has_bias = false;
  const CodeValues* values = nullptr;
};

/// For names of tests.
inline void PrintTo(const Format& format, std::ostream* out) {
  *out << "bits " << format.bits << " group " << format.group;
}

/// A matrix as a file would hold it, and the numbers it stands for.
struct TestMatrix {
  MatrixSource source;
  Matrix values;
};

inline TestMatrix random_matrix(
    std::size_t rows,
    std::size_t cols,
    const Format& format,
    Dice& dice,
    float deviation = 1.0F
) {
  struct Stored {
    std::vector<std::byte> codes, scales, biases;
  };
  auto stored = std::make_shared<Stored>();
  TestMatrix made{{}, Matrix(rows, Row(cols))};
  const std::size_t width = size_of(format.type);
  const std::size_t code_width = format.bits == 0 ? width : 1;
  const std::size_t groups = format.bits == 0 ? 0 : cols / format.group;
  stored->codes.resize(rows * cols * code_width);
  stored->scales.resize(rows * groups * width);
  stored->biases.resize(rows * groups * width);
  for (std::size_t r = 0; r < rows; ++r) {
    std::vector<float> scale(groups), bias(groups);
    for (std::size_t g = 0; g < groups; ++g) {
      const float range = std::ldexp(deviation, 1 - format.bits);
      scale[g] = rounded(range * (1 + dice.below(100) / 64.0F), format.type);
      const std::size_t at = (r * groups + g) * width;
      put_element(format.type, scale[g], stored->scales.data() + at);
      if (format.has_bias) {
        bias[g] = rounded(dice.normal(deviation), format.type);
        put_element(format.type, bias[g], stored->biases.data() + at);
      }
    }
    for (std::size_t c = 0; c < cols; ++c) {
      const std::size_t at = r * cols + c;
      if (format.bits == 0) {
        const float value = rounded(dice.normal(deviation), format.type);
        put_element(format.type, value, stored->codes.data() + at * width);
        made.values[r][c] = value;
        continue;
      }
      int code = dice.below(1 << format.bits);
      if (format.signed_codes) {
        code -= 1 << (format.bits - 1);
      }
      stored->codes[at] = static_cast<std::byte>(code);
      const int value = format.values ? (*format.values)[code] : code;
      made.values[r][c] =
          double{scale[c / format.group]} * value + bias[c / format.group];
    }
  }
  MatrixSource& source = made.source;
  source.rows = rows;
  source.cols = cols;
  source.type = format.type;
  source.bits = format.bits;
  source.group = format.group;
  source.signed_codes = format.signed_codes;
  source.has_bias = format.has_bias;
  source.values = format.values;
  source.read = [stored, cols, code_width, groups, width, format](
                    std::size_t first,
                    std::size_t count,
                    void* codes,
                    void* scales,
                    void* biases
                ) {
    const auto copy =
        [&](const std::vector<std::byte>& from, std::size_t stride, void* to) {
          std::memcpy(to, from.data() + first * stride, count * stride);
        };
    copy(stored->codes, cols * code_width, codes);
    if (format.bits != 0) {
      copy(stored->scales, groups * width, scales);
      if (format.has_bias) {
        copy(stored->biases, groups * width, biases);
      }
    }
  };
  return made;
}

inline TestMatrix identity_matrix(std::size_t n) {
  Dice dice(0);
  TestMatrix made = random_matrix(n, n, {}, dice);
  auto stored = std::make_shared<std::vector<float>>(n * n);
  for (std::size_t r = 0; r < n; ++r) {
    (*stored)[r * n + r] = 1;
    std::fill(made.values[r].begin(), made.values[r].end(), 0.0);
    made.values[r][r] = 1;
  }
  made.source.read =
      [stored,
       n](std::size_t first, std::size_t count, void* codes, void*, void*) {
        std::memcpy(codes, stored->data() + first * n, count * n * 4);
      };
  return made;
}

inline std::vector<float> random_vector(
    std::size_t n, Dice& dice, float mean = 1.0F
) {
  std::vector<float> values(n);
  for (float& value : values) {
    value = mean + dice.normal(0.3F);
  }
  return values;
}

// The same mathematics as Ops, by plain loops in double precision.

inline Row naive_linear(const Row& x, const Matrix& weight) {
  Row y(weight.size());
  for (std::size_t r = 0; r < weight.size(); ++r) {
    y[r] = std::inner_product(x.begin(), x.end(), weight[r].begin(), 0.0);
  }
  return y;
}

inline void naive_rms_norm(
    std::span<double> x, std::span<const float> weight, double eps
) {
  double sum = 0;
  for (double value : x) {
    sum += value * value;
  }
  const double factor = 1 / std::sqrt(sum / double(x.size()) + eps);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] *= factor * weight[i];
  }
}

inline void naive_rope(
    std::span<double> head, const Rope& rope, std::size_t position
) {
  const std::size_t pairs = rope.inv_freq.size();
  for (std::size_t i = 0; i < pairs; ++i) {
    double& a = head[rope.interleaved ? 2 * i : i];
    double& b = head[rope.interleaved ? 2 * i + 1 : i + pairs];
    const double angle = double(position) * rope.inv_freq[i];
    const double x = a;
    a = rope.scale * (x * std::cos(angle) - b * std::sin(angle));
    b = rope.scale * (x * std::sin(angle) + b * std::cos(angle));
  }
}

inline double naive_gate(double x, GateFunction function) {
  if (function == GateFunction::kSilu) {
    return x / (1 + std::exp(-x));
  }
  const double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  return x / 2 * (1 + std::tanh(inner));
}

/// attend() over a whole sequence from position 0. q_norm and k_norm stand
/// for Attention's ids; empty: none.
inline Matrix naive_attend(
    Matrix qkv,
    const Attention& attention,
    std::span<const float> q_norm,
    std::span<const float> k_norm,
    std::span<const float> sinks
) {
  const std::size_t dim = attention.head_dim;
  const std::size_t heads = attention.heads;
  const std::size_t kv_heads = attention.kv_heads;
  const auto head_of = [&](std::size_t token, std::size_t head) {
    return std::span<double>(qkv[token]).subspan(head * dim, dim);
  };
  for (std::size_t t = 0; t < qkv.size(); ++t) {
    for (std::size_t h = 0; h < heads + kv_heads; ++h) {
      const auto norm = h < heads ? q_norm : k_norm;
      if (!norm.empty()) {
        naive_rms_norm(head_of(t, h), norm, attention.norm_eps);
      }
      if (attention.rope != nullptr) {
        naive_rope(head_of(t, h), *attention.rope, t);
      }
    }
  }
  Matrix out(qkv.size(), Row(heads * dim));
  for (std::size_t t = 0; t < qkv.size(); ++t) {
    const std::size_t first = attention.window == 0 || t < attention.window
                                  ? 0
                                  : t + 1 - attention.window;
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t kv = h / (heads / kv_heads);
      const auto q = head_of(t, h);
      Row scores;
      for (std::size_t j = first; j <= t; ++j) {
        const auto k = head_of(j, heads + kv);
        double score = std::inner_product(q.begin(), q.end(), k.begin(), 0.0);
        score *= attention.scale;
        if (attention.softcap != 0) {
          score = attention.softcap * std::tanh(score / attention.softcap);
        }
        scores.push_back(score);
      }
      const double most = *std::max_element(scores.begin(), scores.end());
      double sum = sinks.empty() ? 0 : std::exp(sinks[h] - most);
      for (double& score : scores) {
        score = std::exp(score - most);
        sum += score;
      }
      for (std::size_t j = first; j <= t; ++j) {
        const auto v = head_of(j, heads + kv_heads + kv);
        for (std::size_t d = 0; d < dim; ++d) {
          out[t][h * dim + d] += scores[j - first] / sum * v[d];
        }
      }
    }
  }
  return out;
}

inline Row naive_mlp(
    const Row& x,
    const Matrix& gate_up,
    const Matrix& down,
    GateFunction function
) {
  const Row both = naive_linear(x, gate_up);
  const std::size_t n = both.size() / 2;
  Row inner(n);
  for (std::size_t i = 0; i < n; ++i) {
    inner[i] = naive_gate(both[i], function) * both[n + i];
  }
  return naive_linear(inner, down);
}

/// inv_freq of plain rope for so many pairs.
inline std::vector<double> plain_frequencies(
    std::size_t pairs, double base = 10000
) {
  std::vector<double> frequencies;
  for (std::size_t i = 0; i < pairs; ++i) {
    frequencies.push_back(std::pow(base, -double(i) / double(pairs)));
  }
  return frequencies;
}

/// The largest difference, as a share of the largest reference value.
inline double relative_error(
    std::span<const float> got, std::span<const double> want
) {
  double worst = got.size() == want.size() ? 0 : INFINITY;
  double largest = 1e-30;
  for (std::size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    const double difference = std::abs(got[i] - want[i]);
    worst = difference <= worst ? worst : difference;  // NaN counts as worst
    largest = std::max(largest, std::abs(want[i]));
  }
  return worst / largest;
}

}  // namespace afterglow::mlx_test
