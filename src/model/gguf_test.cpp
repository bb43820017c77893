#include "model/gguf.h"

#include <gtest/gtest.h>

#include <random>

#include "model/gguf_bytes.h"

namespace afterglow {
namespace {

constexpr std::uint32_t kF32 = 0;
constexpr std::uint32_t kQ4_0 = 2;

std::vector<std::byte> pattern(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>(i * 37 + 11);
  }
  return bytes;
}

GgufBytes sample() {
  GgufBytes gguf;
  gguf.text("name", "a model")
      .count("size", 12)
      .number("eps", 0.5F)
      .boolean("flag", 1)
      .texts("words", {"one", "", "three"})
      .floats("scores", {1.0F, 2.5F})
      .count("general.alignment", 32)
      .tensor("q", {32, 2}, kQ4_0, pattern(36))
      .tensor("v", {8}, kF32, pattern(32));
  return gguf;
}

// Copies to memory of exactly the file's size, so that sanitizers see a read
// behind its end.
Result<Gguf> parse(const std::vector<std::byte>& file, std::size_t size) {
  static std::vector<std::byte> exact;
  exact = std::vector<std::byte>(file.begin(), file.begin() + size);
  exact.shrink_to_fit();
  return parse_gguf(exact, "test.gguf");
}

Result<Gguf> parse(const std::vector<std::byte>& file) {
  return parse(file, file.size());
}

void expect_error(
    const std::vector<std::byte>& file, Code code, const std::string& part
) {
  const auto result = parse(file);
  ASSERT_FALSE(result) << "accepted; wanted: " << part;
  EXPECT_EQ(result.error().code, code) << result.error().message;
  EXPECT_NE(result.error().message.find(part), std::string::npos)
      << result.error().message;
}

TEST(Gguf, ReadsMetadataAndTensors) {
  const auto file = sample().finish();
  const auto gguf = parse(file);
  ASSERT_TRUE(gguf) << gguf.error().message;
  GgufFields fields(*gguf, "test");
  EXPECT_EQ(fields.text("name"), "a model");
  EXPECT_EQ(fields.count("size"), 12u);
  EXPECT_EQ(fields.number("eps"), 0.5);
  EXPECT_EQ(fields.boolean("flag"), std::optional(true));
  EXPECT_EQ(fields.boolean("none"), std::nullopt);
  EXPECT_EQ(
      fields.texts("words"), (std::vector<std::string>{"one", "", "three"})
  );
  EXPECT_EQ(fields.floats("scores"), (std::vector<float>{1.0F, 2.5F}));
  EXPECT_TRUE(fields.status());
  ASSERT_EQ(gguf->tensors.size(), 2u);
  const RawTensor& q = gguf->tensors[0];
  EXPECT_EQ(q.name, "q");
  EXPECT_EQ(q.dtype, "Q4_0");
  EXPECT_EQ(q.shape, (std::vector<std::uint64_t>{2, 32}));
  const auto wanted = pattern(36);
  ASSERT_EQ(q.bytes.size(), 36u);
  EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), q.bytes.begin()));
  EXPECT_EQ(gguf->tensors[1].name, "v");
  EXPECT_EQ(gguf->tensors[1].bytes.size(), 32u);
}

TEST(Gguf, WrongTypesOfMetadataAreNamed) {
  const auto file = sample().finish();
  const auto gguf = parse(file);
  ASSERT_TRUE(gguf);
  const auto message = [&](auto&& read) {
    GgufFields fields(*gguf, "test");
    read(fields);
    return fields.status() ? std::string("accepted")
                           : fields.status().error().message;
  };
  using F = GgufFields&;
  EXPECT_EQ(
      message([](F f) { f.count("name"); }),
      "test: metadata 'name' must be a positive integer"
  );
  EXPECT_EQ(
      message([](F f) { f.count("absent"); }),
      "test: metadata 'absent' is missing"
  );
  EXPECT_EQ(
      message([](F f) { f.number("words"); }),
      "test: metadata 'words' must be a finite number"
  );
  EXPECT_EQ(
      message([](F f) { f.boolean("size"); }),
      "test: metadata 'size' must be a boolean"
  );
  EXPECT_EQ(
      message([](F f) { f.text("size"); }),
      "test: metadata 'size' must be a string"
  );
  EXPECT_EQ(
      message([](F f) { f.texts("scores"); }),
      "test: metadata 'scores' must be an array of strings"
  );
  EXPECT_EQ(
      message([](F f) { f.floats("words"); }),
      "test: metadata 'words' must be an array of f32"
  );
  EXPECT_EQ(
      message([](F f) { f.integers("scores"); }),
      "test: metadata 'scores' must be an array of i32"
  );
  EXPECT_EQ(
      message([](F f) { f.integer("eps"); }),
      "test: metadata 'eps' must be an integer"
  );
}

TEST(Gguf, TruncatedAtEveryLengthIsCorrupt) {
  const auto file = sample().finish();
  for (std::size_t size = 0; size < file.size(); ++size) {
    const auto result = parse(file, size);
    ASSERT_FALSE(result) << "accepted " << size << " bytes";
    EXPECT_EQ(result.error().code, Code::kCorrupt) << result.error().message;
  }
}

TEST(Gguf, EachDamagedFieldIsNamed) {
  const GgufBytes bytes = sample();
  struct Damage {
    const char* field;
    std::uint64_t value;
    int size;
    Code code;
    const char* message;
  };
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 60;
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  const Code corrupt = Code::kCorrupt;
  const Code unsupported = Code::kUnsupported;
  const Damage damages[] = {
      {"magic", 0, 4, corrupt, "not a GGUF file"},
      {"version", 1, 4, unsupported, "version 1; versions 2 and 3"},
      {"version", 0x03000000, 4, unsupported, "big-endian"},
      {"tensor count", kHuge, 8, corrupt, "the tensor count"},
      {"tensor count", kAll, 8, corrupt, "the tensor count"},
      {"tensor count", 3, 8, corrupt, "needs"},
      {"metadata count", kAll, 8, corrupt, "the metadata count"},
      {"name key length", kAll, 8, corrupt, "a metadata key needs"},
      {"name key length", 0, 8, corrupt, "a metadata key has 0 bytes"},
      {"name type", 13, 4, corrupt, "type of metadata 'name' 13 is unknown"},
      {"name length", kHuge, 8, corrupt, "metadata 'name' needs"},
      {"flag", 2, 1, corrupt, "metadata 'flag' holds a boolean"},
      {"words element type", 9, 4, unsupported, "an array of arrays"},
      {"words element type", 99, 4, corrupt, "element type of metadata"},
      {"words count", kAll, 8, corrupt, "count of metadata 'words'"},
      {"scores count", kHuge, 8, corrupt, "count of metadata 'scores'"},
      {"words element length", kAll, 8, corrupt, "an element of"},
      {"general.alignment", 0, 4, corrupt, "general.alignment"},
      {"general.alignment", 24, 4, corrupt, "general.alignment"},
      {"general.alignment", 1u << 31, 4, corrupt, "general.alignment"},
      {"q name length", kAll, 8, corrupt, "a tensor name needs"},
      {"q dimensions", 0, 4, corrupt, "tensor 'q' has 0 dimensions"},
      {"q dimensions", 5, 4, corrupt, "tensor 'q' has 5 dimensions"},
      {"v shape", 0, 8, corrupt, "tensor 'v' has a dimension of size 0"},
      {"v shape", kAll, 8, corrupt, "tensor 'v' shape"},
      {"v shape", kHuge, 8, corrupt, "is the file complete?"},
      {"v shape", 9, 8, corrupt, "is the file complete?"},
      {"q shape", 4, 8, corrupt, "overlaps another tensor"},
      {"q type", 4, 4, unsupported, "unknown type number 4"},
      {"q type", 40, 4, unsupported, "unknown type number 40"},
      {"v type", kQ4_0, 4, corrupt, "not a multiple of 32"},
      {"v offset", 8, 8, corrupt, "is not aligned to 32"},
      {"v offset", 32, 8, corrupt, "overlaps another tensor"},
      {"v offset", 1 << 20, 8, corrupt, "is the file complete?"},
      {"v offset", kAll - 31, 8, corrupt, "is the file complete?"},
  };
  for (const Damage& damage : damages) {
    SCOPED_TRACE(
        std::string(damage.field) + " = " + std::to_string(damage.value)
    );
    auto file = bytes.finish();
    std::memcpy(
        file.data() + bytes.fields().at(damage.field),
        &damage.value,
        damage.size
    );
    expect_error(file, damage.code, damage.message);
  }
}

TEST(Gguf, RepeatedNamesAreCorrupt) {
  expect_error(
      GgufBytes().count("a", 1).count("a", 2).finish(),
      Code::kCorrupt,
      "metadata 'a' appears twice"
  );
  expect_error(
      GgufBytes()
          .tensor("t", {8}, kF32, pattern(32))
          .tensor("t", {8}, kF32, pattern(32))
          .finish(),
      Code::kCorrupt,
      "tensor 't' appears twice"
  );
}

TEST(Gguf, DamagedBytesNeverReadOutside) {
  const auto original = sample().finish();
  std::mt19937 random(1);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    auto file = original;
    for (int i = 0; i < 3; ++i) {
      file[random() % file.size()] = static_cast<std::byte>(random());
    }
    const auto result = parse(file);
    if (!result) {
      continue;
    }
    ++accepted;
    for (const RawTensor& tensor : result->tensors) {
      std::uint64_t sum = 0;  // touched, for the sanitizers
      for (std::byte byte : tensor.bytes) {
        sum += static_cast<std::uint8_t>(byte);
      }
      EXPECT_LE(sum, 255 * file.size());
    }
  }
  // Damage to tensor data or texts alone is not visible in the structure.
  EXPECT_GT(accepted, 100);
  EXPECT_LT(accepted, 15000);
}

}  // namespace
}  // namespace afterglow
