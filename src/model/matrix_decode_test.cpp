#include "model/matrix_decode.h"

#include <gtest/gtest.h>

#include <numeric>

#include "kernels/testing/matrix.h"
#include "model/golden.h"
#include "model/mlx_matrix.h"
#include "model/recording_ops.h"

namespace afterglow {
namespace {

// But for the sign of zeros: a code that stands for -0 is a code for 0 here.
bool same_bits(std::vector<float> a, std::vector<float> b) {
  for (std::vector<float>* values : {&a, &b}) {
    for (float& value : *values) {
      value += 0.0F;
    }
  }
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
}

// As the kernels' packed form has it.
std::vector<float> decode_packed(const MatrixSource& source) {
  const auto packed = test::pack(source);
  std::vector<float> values(source.rows * source.cols);
  for (std::size_t row = 0; row < source.rows; ++row) {
    decode_row(packed.matrix, row, &values[row * source.cols]);
  }
  return values;
}

RawTensor renamed(RawTensor tensor, const std::string& dtype) {
  tensor.dtype = dtype;
  return tensor;
}

TEST(MatrixDecode, GgufValuesAreTheReferencesBitForBit) {
  const Golden golden("dequant.safetensors");
  for (const char* type :
       {"F16",
        "BF16",
        "Q4_0",
        "Q4_1",
        "Q5_0",
        "Q5_1",
        "Q8_0",
        "IQ4_NL",
        "MXFP4",
        "Q2_K",
        "Q3_K",
        "Q4_K",
        "Q5_K",
        "Q6_K",
        "IQ4_XS"}) {
    SCOPED_TRACE(type);
    const auto wanted = golden.values<float>(std::string(type) + ".values");
    const RawTensor& values = golden.tensor(std::string(type) + ".values");
    RawTensor tensor = renamed(golden.tensor(std::string(type) + ".raw"), type);
    tensor.shape = values.shape;
    const auto source = single_tensor_matrix(tensor, {}, "test");
    ASSERT_TRUE(source) << source.error().message;
    for (std::size_t step : {1, 2, 5}) {
      EXPECT_TRUE(same_bits(decode_matrix(*source, step), wanted));
    }
    EXPECT_TRUE(same_bits(decode_packed(*source), wanted));
  }
}

void expect_mlx(
    const MlxTensors& tensors,
    const MlxQuantization& quantization,
    const std::vector<float>& values
) {
  const auto found = mlx_quantization(tensors, 256, "test");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, quantization);
  const MatrixSource source = mlx_matrix(tensors, *found, 256);
  for (std::size_t step : {1, 3, 5}) {
    EXPECT_TRUE(same_bits(decode_matrix(source, step), values));
  }
  if (tensors.scales.dtype != "F32") {  // else MLX rounds scale * code, too
    EXPECT_TRUE(same_bits(decode_packed(source), values));
  }
}

TEST(MatrixDecode, MlxsFloatsAreMlxsBitForBit) {
  const Golden golden("dequant.safetensors");
  const MlxQuantization modes[] = {
      {"mxfp4", 4, 32}, {"nvfp4", 4, 16}, {"mxfp8", 8, 32}};
  for (const MlxQuantization& mode : modes) {
    SCOPED_TRACE(mode.mode);
    const std::string key = "mlx." + mode.mode;
    expect_mlx(
        {golden.tensor(key + ".codes"),
         golden.tensor(key + ".scales"),
         nullptr},
        mode,
        golden.values<float>(key + ".values")
    );
  }
}

TEST(MatrixDecode, MlxValuesAreMlxsBitForBit) {
  const Golden golden("dequant.safetensors");
  const std::pair<const char*, const char*> types[] = {
      {"float16", "F16"}, {"bfloat16", "BF16"}, {"float32", "F32"}};
  for (int bits : {2, 3, 4, 5, 6, 8}) {
    for (int group : {32, 64, 128}) {
      for (const auto& [name, dtype] : types) {
        const std::string key = "mlx." + std::to_string(bits) + "." +
                                std::to_string(group) + "." + name;
        SCOPED_TRACE(key);
        const auto scales = renamed(golden.tensor(key + ".scales"), dtype);
        const auto biases = renamed(golden.tensor(key + ".biases"), dtype);
        const MlxQuantization wanted{
            "affine", std::size_t(bits), std::size_t(group)};
        expect_mlx(
            {golden.tensor(key + ".codes"), scales, &biases},
            wanted,
            golden.values<float>(key + ".values")
        );
      }
    }
  }
}

// GGUF's order of a head's rows: the reference writes row (half, i) of HF as
// row (i, half).
TEST(MatrixDecode, RopeRowsComeBackInHfOrder) {
  constexpr std::size_t kHeads = 3;
  constexpr std::size_t kHeadDim = 8;
  constexpr std::size_t kCols = 2;
  std::vector<float> hf(kHeads * kHeadDim * kCols);
  std::iota(hf.begin(), hf.end(), 1.0F);
  std::vector<float> file;
  for (std::size_t head = 0; head < kHeads; ++head) {
    for (std::size_t i = 0; i < kHeadDim / 2; ++i) {
      for (std::size_t half = 0; half < 2; ++half) {
        const std::size_t row = head * kHeadDim + half * kHeadDim / 2 + i;
        file.insert(file.end(), &hf[row * kCols], &hf[row * kCols] + kCols);
      }
    }
  }
  const RawTensor matrix{
      "q", "F32", {kHeads * kHeadDim, kCols}, std::as_bytes(std::span(file))};
  const auto source = single_tensor_matrix(matrix, {kHeadDim}, "test");
  ASSERT_TRUE(source);
  EXPECT_EQ(decode_matrix(*source, 5), hf);

  const RawTensor bias{
      "b", "F32", {file.size()}, std::as_bytes(std::span(file))};
  const auto plain = read_vector(bias, {}, "test");
  ASSERT_TRUE(plain);
  EXPECT_EQ(*plain, file);
  const auto turned = read_vector(bias, {2 * kHeadDim}, "test");
  ASSERT_TRUE(turned);
  EXPECT_EQ((*turned)[0], file[0]);
  EXPECT_EQ((*turned)[1], file[2]);
  EXPECT_EQ((*turned)[kHeadDim], file[1]);
}

TEST(MatrixDecode, UnsupportedFormatsAreNamed) {
  const std::vector<std::byte> bytes(4096);
  const RawTensor ternary{"w", "TQ2_0", {1, 256}, std::span(bytes).first(66)};
  const auto refused = single_tensor_matrix(ternary, {}, "test");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnsupported);
  EXPECT_NE(
      refused.error().message.find("tensor 'w' has type TQ2_0"),
      std::string::npos
  );

  struct Case {
    std::uint64_t words, groups;
    const char* scales;
    Code code;
    const char* message;
  };
  const Case cases[] = {
      {14, 2, "F16", Code::kUnsupported, "7-bit codes"},
      {8, 4, "F16", Code::kUnsupported, "groups of 16"},
      {8, 3, "F16", Code::kCorrupt, "no quantization of 64 columns"},
      {7, 2, "F16", Code::kCorrupt, "no quantization of 64 columns"},
      {8, 1, "U8", Code::kUnsupported, "'w' has 4-bit codes in groups of 64"},
      {16, 4, "U8", Code::kUnsupported, "none of mxfp4, nvfp4, mxfp8"},
      {8, 2, "F16!", Code::kUnsupported, "F16 scales and no biases"},
  };
  for (const Case& c : cases) {
    const std::string type = std::string(c.scales).substr(0, 3);
    const bool biased = type == c.scales && type != "U8";
    const RawTensor weight{"w", "U32", {1, c.words}, bytes};
    const RawTensor scales{"s", type, {1, c.groups}, bytes};
    const auto found =
        mlx_quantization({weight, scales, biased ? &scales : nullptr}, 64, "t");
    ASSERT_FALSE(found) << c.message;
    EXPECT_EQ(found.error().code, c.code);
    EXPECT_NE(found.error().message.find(c.message), std::string::npos)
        << found.error().message;
  }
}

}  // namespace
}  // namespace afterglow
