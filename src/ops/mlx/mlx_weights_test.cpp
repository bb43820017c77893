#include "ops/mlx/mlx_weights.h"

#include <gtest/gtest.h>

#include <numeric>

#include "ops/mlx/mlx_test_support.h"

namespace afterglow {
namespace {

using mlx_test::Dice;
using mlx_test::Format;
using mlx_test::Matrix;
using mlx_test::relative_error;
using mlx_test::Row;
using mlx_test::TestMatrix;

const mx::Stream& cpu_stream() {
  static const mx::Stream stream = mx::default_stream(mx::Device::cpu);
  return stream;
}

std::vector<float> to_host(const mx::array& a) {
  mx::array flat = mx::contiguous(
      mx::astype(a, mx::float32, cpu_stream()), false, cpu_stream()
  );
  mx::eval(flat);
  return {flat.data<float>(), flat.data<float>() + flat.size()};
}

Row flattened(const Matrix& matrix) {
  Row all;
  for (const Row& row : matrix) {
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

mx::array all_rows(std::size_t rows) {
  return mx::arange(0, static_cast<int>(rows), 1, mx::int32, cpu_stream());
}

MlxLinear packed(
    std::span<const MatrixSource> parts, std::span<const float> bias, bool widen
) {
  ThreadPool pool(2);
  auto linear = pack_linear(parts, bias, widen, pool);
  EXPECT_TRUE(linear.ok());
  return std::move(linear).value();
}

constexpr CodeValues kValues = {
    0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

std::vector<Format> formats() {
  std::vector<Format> all;
  for (ElementType type :
       {ElementType::kF32, ElementType::kF16, ElementType::kBF16}) {
    all.push_back({type});
    for (int bits = 1; bits <= 8; ++bits) {
      for (std::size_t group : {16, 32, 64, 128, 256}) {
        all.push_back({type, bits, group, false, bits % 2 == 0});
      }
    }
    all.push_back({type, 8, 32, true, false});
    all.push_back({type, 8, 32, true, true});
    for (int bits = 3; bits <= 6; ++bits) {
      all.push_back({type, bits, 32, true, false});
    }
    all.push_back({type, 4, 32, false, false, &kValues});
    all.push_back({type, 8, 32, false, false});
    all.push_back({type, 4, 32, false, false});
  }
  return all;
}

std::string describe(const Format& format) {
  return "type " + std::to_string(int(format.type)) + " bits " +
         std::to_string(format.bits) + " group " +
         std::to_string(format.group) + (format.signed_codes ? " signed" : "") +
         (format.values != nullptr ? " values" : "") +
         (format.has_bias ? " biased" : "");
}

TEST(MlxWeights, rows_of_every_format_are_what_the_codes_stand_for) {
  Dice dice(1);
  for (const Format& format : formats()) {
    SCOPED_TRACE(describe(format));
    // 67 rows: blocks of rows with a rest.
    const TestMatrix matrix = random_matrix(67, 256, format, dice);
    const MlxLinear linear = packed({{matrix.source}}, {}, true);
    const auto got =
        to_host(take_rows(linear, all_rows(67), mx::float32, cpu_stream()));
    EXPECT_LT(relative_error(got, flattened(matrix.values)), 1e-6);
  }
}

TEST(MlxWeights, formats_that_mlx_holds_exactly_stay_packed) {
  Dice dice(2);
  for (const Format& format : formats()) {
    SCOPED_TRACE(describe(format));
    const TestMatrix matrix = random_matrix(4, 256, format, dice);
    const MlxLinear linear = packed({{matrix.source}}, {}, false);
    ASSERT_EQ(linear.pieces.size(), 1U);
    const bool dense = format.bits == 0 || format.group == 16 ||
                       format.values != nullptr ||
                       (format.signed_codes && format.has_bias);
    EXPECT_EQ(linear.pieces[0].bits == 0, dense);
    if (!dense) {
      const std::size_t width = size_of(format.type);
      EXPECT_EQ(linear.pieces[0].scales->itemsize(), width);
      EXPECT_LE(linear.bytes(), 4 * 256U + 4 * 256 / 32 * 2 * width);
    }
  }
}

TEST(MlxWeights, a_layer_is_the_product_with_all_parts_plus_the_bias) {
  Dice dice(3);
  const std::vector<TestMatrix> matrices = {
      random_matrix(5, 64, {ElementType::kF16, 4, 32, false, true}, dice),
      random_matrix(3, 64, {ElementType::kF16, 4, 32, false, true}, dice),
      random_matrix(7, 64, {ElementType::kF32, 8, 32, true, false}, dice),
      random_matrix(2, 64, {ElementType::kBF16}, dice),
  };
  std::vector<MatrixSource> parts;
  Matrix weight;
  for (const TestMatrix& matrix : matrices) {
    parts.push_back(matrix.source);
    weight.insert(weight.end(), matrix.values.begin(), matrix.values.end());
  }
  const auto bias = mlx_test::random_vector(17, dice);
  const MlxLinear linear = packed(parts, bias, true);
  EXPECT_EQ(linear.pieces.size(), 3U) << "parts alike lie together";

  std::vector<float> x(4 * 64);
  Row want;
  for (std::size_t t = 0; t < 4; ++t) {
    Row row;
    for (std::size_t c = 0; c < 64; ++c) {
      x[t * 64 + c] = dice.normal();
      row.push_back(x[t * 64 + c]);
    }
    Row y = mlx_test::naive_linear(row, weight);
    for (std::size_t r = 0; r < y.size(); ++r) {
      want.push_back(y[r] + bias[r]);
    }
  }
  const auto got =
      to_host(apply_linear(linear, mx::array(x.data(), {4, 64}), cpu_stream()));
  EXPECT_LT(relative_error(got, want), 1e-6);
}

TEST(MlxWeights, activations_of_16_bits_keep_their_type) {
  Dice dice(4);
  const auto dense =
      random_matrix(8, 64, {ElementType::kF16, 4, 16, false, true}, dice, 0.1F);
  const auto affine =
      random_matrix(8, 64, {ElementType::kF16, 4, 32, false, true}, dice, 0.1F);
  for (const TestMatrix& matrix : {dense, affine}) {
    const MlxLinear linear = packed({{matrix.source}}, {}, false);
    const mx::array x = mx::ones({1, 64}, mx::float16, cpu_stream());
    const mx::array y = apply_linear(linear, x, cpu_stream());
    EXPECT_EQ(y.dtype(), mx::float16);
    const Row want = mlx_test::naive_linear(Row(64, 1.0), matrix.values);
    EXPECT_LT(relative_error(to_host(y), want), 1e-2);
  }
}

TEST(MlxWeights, what_does_not_fit_is_refused_by_name) {
  Dice dice(5);
  ThreadPool pool(1);
  const auto wide = random_matrix(4, 64, {}, dice).source;
  const auto narrow = random_matrix(4, 32, {}, dice).source;
  const auto refusal = [&](std::vector<MatrixSource> parts,
                           std::size_t bias) -> Error {
    auto made = pack_linear(parts, std::vector<float>(bias), true, pool);
    return made.ok() ? Error{Code::kNotFound, "accepted"} : made.error();
  };
  EXPECT_EQ(refusal({}, 0).code, Code::kInvalidArgument);
  EXPECT_NE(
      refusal({wide, narrow}, 0).message.find("[4, 32]"), std::string::npos
  );
  EXPECT_NE(refusal({wide}, 3).message.find("3 bias"), std::string::npos);
  auto odd = random_matrix(4, 64, {ElementType::kF32, 4, 32}, dice).source;
  odd.group = 48;
  EXPECT_EQ(refusal({odd}, 0).code, Code::kUnsupported);
  odd.group = 32;
  odd.bits = 9;
  EXPECT_NE(refusal({odd}, 0).message.find("9 bits"), std::string::npos);
}

}  // namespace
}  // namespace afterglow
