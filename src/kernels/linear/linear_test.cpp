#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/dispatch/dispatch.h"
#include "kernels/testing/linear.h"
#include "kernels/testing/matrix.h"

namespace afterglow {
namespace {

using test::Format;
using test::Matrix;
using test::Packed;
using test::Random;
using test::same_bits;

constexpr std::int32_t kLevels[] = {kInt8Levels, kInt16Levels};

// Inputs with an outlier now and then, a group of zeros, and extremes.
std::vector<float> inputs(
    std::size_t tokens, std::size_t cols, Random& random
) {
  std::vector<float> x = random.floats(tokens * cols, 2);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (random.below(50) == 0) {
      x[i] *= 20;
    }
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(32, cols); ++i) {
    x[i] = 0;
  }
  if (cols >= 96) {
    for (std::size_t i = 64; i < 96; ++i) {
      x[i] = 3;  // all of the largest code: the largest sums
    }
  }
  return x;
}

// What rounding to `levels` may change in one output, plus float rounding.
double tolerance(
    const Matrix& m,
    const float* x,
    std::size_t row,
    std::size_t cols,
    std::int32_t levels
) {
  double bound = 0;
  for (std::size_t c = 0; c < cols; c += 32) {
    double most = 0;
    for (std::size_t i = c; i < std::min(cols, c + 32); ++i) {
      most = std::max(most, std::fabs(double{x[i]}));
    }
    for (std::size_t i = c; i < std::min(cols, c + 32); ++i) {
      double w = std::fabs(m.weights[row * cols + i]);
      // Half a step of the input; float: a few ulps of each summand, with
      // the bias and the code's part of it apart.
      double rounding = levels > 0 ? 0.5 * most / levels : 0;
      bound += w * rounding + (w + 26) * most * 4e-7;
    }
  }
  return bound;
}

void expect_near_double(
    const Matrix& m,
    const std::vector<float>& x,
    const std::vector<float>& bias,
    std::size_t tokens,
    const std::vector<float>& y,
    std::int32_t levels,
    const std::string& name
) {
  std::size_t rows = m.source.rows;
  std::size_t cols = m.source.cols;
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t r = 0; r < rows; ++r) {
      double want = bias.empty() ? 0 : bias[r];
      for (std::size_t c = 0; c < cols; ++c) {
        want += m.weights[r * cols + c] * x[t * cols + c];
      }
      double bound = tolerance(m, x.data() + t * cols, r, cols, levels);
      ASSERT_NEAR(y[t * rows + r], want, bound)
          << name << " levels " << levels << " token " << t << " row " << r;
    }
  }
}

TEST(Linear, every_format_is_near_the_double_loop) {
  Random random(1);
  for (const Format& format : test::all_formats()) {
    Matrix m = test::random_matrix(format, 21, 256, random);
    Packed packed = test::pack(m.source);
    std::vector<float> x = inputs(3, 256, random);
    std::vector<float> bias = random.floats(21);
    const Kernels& k = *available_kernels().back();
    if (format.bits != 0) {
      for (std::int32_t levels : kLevels) {
        expect_near_double(
            m,
            x,
            bias,
            3,
            test::linear_int(k, packed.matrix, x, 3, levels, bias.data()),
            levels,
            format.name
        );
      }
    }
    expect_near_double(
        m,
        x,
        {},
        3,
        test::linear_f32(k, packed.matrix, x, 3, nullptr),
        0,
        format.name
    );
  }
}

TEST(Linear, every_target_has_the_scalar_bits) {
  Random random(2);
  for (const Format& format : test::all_formats()) {
    for (std::size_t rows : {1, 15, 16, 17, 40}) {
      std::size_t cols = 128 * (1 + random.below(2));
      std::size_t tokens = 1 + random.below(19);
      Matrix m = test::random_matrix(format, rows, cols, random);
      Packed packed = test::pack(m.source);
      std::vector<float> x = inputs(tokens, cols, random);
      std::vector<float> bias = random.floats(rows);
      const float* maybe = rows % 2 == 0 ? bias.data() : nullptr;
      const Kernels& scalar = *available_kernels().front();
      auto f32 = test::linear_f32(scalar, packed.matrix, x, tokens, maybe);
      for (const Kernels* k : available_kernels().subspan(1)) {
        ASSERT_TRUE(same_bits(
            f32, test::linear_f32(*k, packed.matrix, x, tokens, maybe)
        )) << k->name
           << " " << format.name << " rows " << rows << " tokens " << tokens;
      }
      if (format.bits == 0) {
        continue;
      }
      for (std::int32_t levels : kLevels) {
        auto want =
            test::linear_int(scalar, packed.matrix, x, tokens, levels, maybe);
        for (const Kernels* k : available_kernels().subspan(1)) {
          auto got =
              test::linear_int(*k, packed.matrix, x, tokens, levels, maybe);
          ASSERT_TRUE(same_bits(want, got))
              << k->name << " " << format.name << " levels " << levels
              << " rows " << rows << " tokens " << tokens;
        }
      }
    }
  }
}

// What a token gets must not depend on how many others there are.
TEST(Linear, a_token_alone_has_the_same_bits_as_among_many) {
  Random random(3);
  for (const Format& format : test::all_formats()) {
    std::size_t rows = 24;
    std::size_t cols = 128;
    std::size_t tokens = 31;
    Matrix m = test::random_matrix(format, rows, cols, random);
    Packed packed = test::pack(m.source);
    std::vector<float> x = inputs(tokens, cols, random);
    for (const Kernels* k : available_kernels().subspan(1)) {
      auto all = test::linear_f32(*k, packed.matrix, x, tokens, nullptr);
      auto all_int =
          format.bits == 0
              ? all
              : test::linear_int(
                    *k, packed.matrix, x, tokens, kInt16Levels, nullptr
                );
      for (std::size_t t = 0; t < tokens; ++t) {
        std::vector<float> one(
            x.begin() + static_cast<long>(t * cols),
            x.begin() + static_cast<long>((t + 1) * cols)
        );
        auto alone = test::linear_f32(*k, packed.matrix, one, 1, nullptr);
        ASSERT_EQ(
            0, std::memcmp(alone.data(), &all[t * rows], rows * sizeof(float))
        );
        if (format.bits != 0) {
          alone = test::linear_int(
              *k, packed.matrix, one, 1, kInt16Levels, nullptr
          );
          ASSERT_EQ(
              0,
              std::memcmp(
                  alone.data(), &all_int[t * rows], rows * sizeof(float)
              )
          ) << format.name;
        }
      }
    }
  }
}

// Dense rows of any length are fine.
TEST(Linear, dense_takes_odd_widths) {
  Random random(4);
  Format format{"f16", ElementType::kF16, 0, 0, false, false};
  for (std::size_t cols = 1; cols <= 33; ++cols) {
    Matrix m = test::random_matrix(format, 5, cols, random);
    Packed packed = test::pack(m.source);
    std::vector<float> x = inputs(2, cols, random);
    for (const Kernels* k : available_kernels()) {
      auto y = test::linear_f32(*k, packed.matrix, x, 2, nullptr);
      expect_near_double(m, x, {}, 2, y, 0, k->name);
    }
  }
}

// An input that is no number must show in every output of its token.
TEST(Linear, a_nan_input_is_not_hidden_by_rounding) {
  Random random(5);
  Format format{"4-bit", ElementType::kF16, 4, 32, false, true};
  Matrix m = test::random_matrix(format, 16, 64, random);
  Packed packed = test::pack(m.source);
  for (float bad : {NAN, INFINITY, -INFINITY}) {
    std::vector<float> x = inputs(2, 64, random);
    x[40] = bad;
    for (const Kernels* k : available_kernels()) {
      auto y = test::linear_int(*k, packed.matrix, x, 2, kInt8Levels, nullptr);
      for (std::size_t r = 0; r < 16; ++r) {
        EXPECT_FALSE(std::isfinite(y[r])) << k->name;
        EXPECT_TRUE(std::isfinite(y[16 + r])) << k->name;
      }
    }
  }
}

TEST(Pack, decoded_rows_are_the_weights) {
  Random random(6);
  for (const Format& format : test::all_formats()) {
    Matrix m = test::random_matrix(format, 19, 128, random);
    Packed packed = test::pack(m.source);
    std::vector<float> row(128);
    for (std::size_t r = 0; r < 19; ++r) {
      decode_row(packed.matrix, r, row.data());
      for (std::size_t c = 0; c < 128; ++c) {
        ASSERT_EQ(row[c], static_cast<float>(m.weights[r * 128 + c]))
            << format.name << " row " << r << " col " << c;
      }
    }
  }
}

TEST(Pack, what_cannot_be_packed_is_named) {
  MatrixSource source;
  source.rows = 16;
  source.cols = 96;
  source.bits = 4;
  source.group = 64;
  Result<PackedMatrix> layout = packed_layout(source, 16);
  ASSERT_FALSE(layout.ok());
  EXPECT_EQ(layout.error().code, Code::kUnsupported);
  EXPECT_NE(layout.error().message.find("64"), std::string::npos);
  auto refused = [&] { return !packed_layout(source, 16).ok(); };
  source.group = 32;
  source.bits = 9;
  EXPECT_TRUE(refused());
  source.bits = 8;
  EXPECT_FALSE(refused());
  source.values = &test::kSmallValues;
  EXPECT_TRUE(refused());
  source.bits = 4;
  EXPECT_FALSE(refused());
  source.values = nullptr;
  source.signed_codes = true;
  source.has_bias = true;
  EXPECT_TRUE(refused());
  source.has_bias = false;
  source.group = 16;
  EXPECT_FALSE(refused());
  source.cols = 112;
  EXPECT_TRUE(refused());
}

}  // namespace
}  // namespace afterglow
