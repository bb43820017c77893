#include "model/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace afterglow {
namespace {

constexpr char kHeader[] =
    R"({"__metadata__":{"format":"mlx"},)"
    R"("a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
    R"("b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]}}  )";
constexpr std::size_t kDataBytes = 32;

std::vector<std::byte> file_of(
    const std::string& header, std::size_t data_bytes = kDataBytes
) {
  const std::uint64_t length = header.size();
  std::vector<std::byte> file(8 + header.size() + data_bytes);
  std::memcpy(file.data(), &length, 8);
  std::memcpy(file.data() + 8, header.data(), header.size());
  for (std::size_t i = 0; i < data_bytes; ++i) {
    file[8 + header.size() + i] = static_cast<std::byte>(i + 1);
  }
  return file;
}

std::string replaced(const std::string& from, const std::string& to) {
  std::string header = kHeader;
  const std::size_t at = header.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return header.replace(at, from.size(), to);
}

void expect_error(
    const std::vector<std::byte>& file, Code code, const std::string& part
) {
  const auto result = parse_safetensors(file, "test.safetensors");
  ASSERT_FALSE(result) << "accepted; wanted: " << part;
  EXPECT_EQ(result.error().code, code) << result.error().message;
  EXPECT_NE(result.error().message.find(part), std::string::npos)
      << result.error().message;
}

TEST(Safetensors, ReadsTensorsAndMetadata) {
  const auto file = file_of(kHeader);
  const auto result = parse_safetensors(file, "test.safetensors");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->metadata.at("format"), "mlx");
  ASSERT_EQ(result->tensors.size(), 2u);
  EXPECT_EQ(result->tensors[0].name, "a");
  EXPECT_EQ(result->tensors[0].dtype, "F32");
  EXPECT_EQ(result->tensors[0].shape, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(result->tensors[1].name, "b");
  ASSERT_EQ(result->tensors[1].bytes.size(), 8u);
  EXPECT_EQ(result->tensors[1].bytes[0], std::byte{25});
}

TEST(Safetensors, NullMetadataOfMlxIsNone) {
  const auto file = file_of(replaced(R"({"format":"mlx"})", "null"));
  const auto result = parse_safetensors(file, "test.safetensors");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->metadata.empty());
  EXPECT_EQ(result->tensors.size(), 2u);
}

TEST(Safetensors, TruncatedAtEveryLengthIsCorrupt) {
  const auto file = file_of(kHeader);
  for (std::size_t size = 0; size < file.size(); ++size) {
    const std::vector<std::byte> cut(file.begin(), file.begin() + size);
    const auto result = parse_safetensors(cut, "test.safetensors");
    ASSERT_FALSE(result) << "accepted " << size << " bytes";
    EXPECT_EQ(result.error().code, Code::kCorrupt) << result.error().message;
  }
}

TEST(Safetensors, HeaderLengthsBeyondTheFileAreCorrupt) {
  for (std::uint64_t length :
       {std::uint64_t{0},
        std::uint64_t{1} << 60,
        ~std::uint64_t{0},
        std::uint64_t{100'000'001}}) {
    auto file = file_of(kHeader);
    std::memcpy(file.data(), &length, 8);
    expect_error(file, Code::kCorrupt, length == 0 ? "'{'" : "header length");
  }
}

TEST(Safetensors, EachDamagedFieldIsNamed) {
  struct Damage {
    std::string header;
    const char* message;
    Code code = Code::kCorrupt;
  };
  const std::string deep(100, '[');
  const Damage damages[] = {
      {"[1]", "does not start with '{'"},
      {replaced("}}", "}"), "not valid JSON"},
      {replaced("\"b\"", "\"a\""), "duplicate key 'a'"},
      {replaced("\"shape\":[4]", "\"dtype\":\"F32\",\"shape\":[4]"),
       "duplicate key 'dtype'"},
      {replaced("[2,3]", deep), "nested deeper"},
      {replaced("\"F32\"", "\"F33\""),
       "unknown dtype 'F33'",
       Code::kUnsupported},
      {replaced("\"F32\"", "32"), "needs exactly dtype"},
      {replaced("\"shape\":[4],", ""), "needs exactly dtype"},
      {replaced("\"shape\":[4],", "\"shape\":[4],\"x\":1,"),
       "needs exactly dtype"},
      {replaced("[2,3]", "[2,-3]"), "tensor 'a': shape must be"},
      {replaced("[2,3]", "[2,3.5]"), "tensor 'a': shape must be"},
      {replaced("[2,3]", "6"), "tensor 'a': shape must be"},
      {replaced("[2,3]", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,6]"),
       "tensor 'a': shape must be"},
      {replaced("[2,3]", "[2,4]"), "needs 32 bytes"},
      {replaced("[2,3]", "[4294967296,4294967296,4]"), "overflows"},
      {replaced("[2,3]", "[4611686018427387904,1]"), "overflows"},
      {replaced("[0,24]", "[0,24,32]"), "data_offsets must be"},
      {replaced("[0,24]", "[24,0]"), "lie outside"},
      {replaced("[24,32]", "[25,33]"), "lie outside"},
      {replaced("[24,32]", "[18446744073709551608,18446744073709551615]"),
       "lie outside"},
      {replaced("[24,32]", "[20,28]"), "overlaps the data of another"},
      {replaced("\"mlx\"", "7"), "__metadata__ 'format' is not a string"},
      {replaced("{\"format\":\"mlx\"}", "[]"), "__metadata__ must be"},
  };
  for (const Damage& damage : damages) {
    SCOPED_TRACE(damage.header);
    expect_error(file_of(damage.header), damage.code, damage.message);
  }
  expect_error(
      file_of(replaced("[24,32]", "[26,34]"), kDataBytes + 2),
      Code::kCorrupt,
      "tensor 'b' leaves a gap"
  );
  expect_error(
      file_of(kHeader, kDataBytes + 1),
      Code::kCorrupt,
      "1 bytes after the last tensor"
  );
}

TEST(Safetensors, DamagedBytesNeverReadOutside) {
  const auto original = file_of(kHeader);
  std::mt19937 random(1);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    auto file = original;
    for (int i = 0; i < 2; ++i) {
      file[random() % file.size()] = static_cast<std::byte>(random());
    }
    const auto result = parse_safetensors(file, "test.safetensors");
    if (!result) {
      continue;
    }
    ++accepted;
    std::size_t bytes = 0;
    for (const RawTensor& tensor : result->tensors) {
      bytes += tensor.bytes.size();
    }
    EXPECT_EQ(bytes, kDataBytes);
  }
  EXPECT_GT(accepted, 100);
  EXPECT_LT(accepted, 15000);
}

}  // namespace
}  // namespace afterglow
