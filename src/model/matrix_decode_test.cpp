#include "model/matrix_decode.h"

#include <gtest/gtest.h>

#include <numeric>

#include "model/golden.h"
#include "model/recording_ops.h"

namespace afterglow {
namespace {

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
}

RawTensor renamed(RawTensor tensor, const std::string& dtype) {
  tensor.dtype = dtype;
  return tensor;
}

TEST(MatrixDecode, GgufValuesAreTheReferencesBitForBit) {
  const Golden golden("dequant.safetensors");
  for (const char* type : {"Q4_0", "Q4_1", "Q8_0", "F16", "BF16"}) {
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
  }
}

TEST(MatrixDecode, MlxValuesAreMlxsBitForBit) {
  const Golden golden("dequant.safetensors");
  const std::pair<const char*, const char*> types[] = {
      {"float16", "F16"}, {"bfloat16", "BF16"}, {"float32", "F32"}};
  for (int bits : {4, 8}) {
    for (int group : {32, 64, 128}) {
      for (const auto& [name, dtype] : types) {
        const std::string key = "mlx." + std::to_string(bits) + "." +
                                std::to_string(group) + "." + name;
        SCOPED_TRACE(key);
        const auto source = mlx_affine_matrix(
            golden.tensor(key + ".codes"),
            renamed(golden.tensor(key + ".scales"), dtype),
            renamed(golden.tensor(key + ".biases"), dtype),
            256,
            "test"
        );
        ASSERT_TRUE(source) << source.error().message;
        EXPECT_EQ(source->bits, bits);
        EXPECT_EQ(source->group, std::size_t(group));
        const auto wanted = golden.values<float>(key + ".values");
        for (std::size_t step : {1, 3, 5}) {
          EXPECT_TRUE(same_bits(decode_matrix(*source, step), wanted));
        }
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
  const RawTensor k_quant{"w", "Q4_K", {1, 256}, std::span(bytes).first(144)};
  const auto refused = single_tensor_matrix(k_quant, {}, "test");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnsupported);
  EXPECT_NE(
      refused.error().message.find("tensor 'w' has type Q4_K"),
      std::string::npos
  );

  struct Case {
    std::uint64_t words, groups;
    std::size_t cols;
    Code code;
    const char* message;
  };
  const Case cases[] = {
      {6, 1, 64, Code::kUnsupported, "3-bit codes"},
      {8, 4, 64, Code::kUnsupported, "groups of 16"},
      {8, 3, 64, Code::kCorrupt, "no affine quantization of 64 columns"},
      {7, 2, 64, Code::kCorrupt, "no affine quantization of 64 columns"},
  };
  for (const Case& c : cases) {
    const RawTensor weight{"w", "U32", {1, c.words}, bytes};
    const RawTensor scales{"s", "F16", {1, c.groups}, bytes};
    const auto source = mlx_affine_matrix(weight, scales, scales, c.cols, "t");
    ASSERT_FALSE(source) << c.message;
    EXPECT_EQ(source.error().code, c.code);
    EXPECT_NE(source.error().message.find(c.message), std::string::npos)
        << source.error().message;
  }
}

}  // namespace
}  // namespace afterglow
