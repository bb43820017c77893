#include "store/block_format.h"

#include <fstream>

#include "base/memory_file_system.h"
#include "store/block_io.h"
#include "store/testing.h"

namespace afterglow {
namespace {

using namespace testing;

using Bytes = std::vector<std::byte>;

/// A block file in memory, to be damaged and read back.
class BlockFormat : public ::testing::Test {
 protected:
  BlockFormat() : pool_(key_.layout.page_bytes()) { build(3); }

  void build(std::size_t n, std::uint64_t start = 512) {
    BlockId parent;
    parent.bytes.fill(7);
    block_ = make_block(parent, start, make_tokens(n, 5));
    PagePtr page = make_page(pool_, key_.layout, *block_);
    BlockImage image = make_block_image(key_, *block_, *page);
    bytes_ = image.head;
    bytes_.insert(bytes_.end(), image.kv.begin(), image.kv.end());
  }

  /// Reads the bytes as the block's file; a page when all is verified.
  Result<std::shared_ptr<Page>> read(std::span<const std::byte> bytes) {
    MemoryDisk disk;
    auto files = disk.file_system();
    write_file(*files, "block", bytes);
    auto file = files->open("block");
    auto head = read_block_head(key_, block_->id, **file);
    if (!head) {
      return head.error();
    }
    std::shared_ptr<Page> page = pool_.make();
    if (Status kv = read_block_kv(key_, *head, **file, *page); !kv) {
      return kv.error();
    }
    return page;
  }

  std::string message(std::span<const std::byte> bytes, Code code) {
    auto result = read(bytes);
    if (result) {
      return "accepted";
    }
    EXPECT_EQ(result.error().code, code) << result.error().message;
    return result.error().message;
  }

  /// The file with `from` in its header replaced, the padding adjusted and
  /// the sum made right again: damage that only a check of its own notices.
  Bytes replaced(const std::string& from, const std::string& to) {
    std::uint64_t length;
    std::memcpy(&length, bytes_.data(), 8);
    std::string json(reinterpret_cast<const char*>(bytes_.data()) + 8, length);
    std::size_t at = json.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    json.replace(at, from.size(), to);
    json.erase(json.find_last_not_of(' ') + 1);
    json.resize(std::max<std::size_t>(json.size(), length), ' ');
    return with_header(json);
  }

  Bytes with_header(const std::string& json) {
    std::uint64_t old_length;
    std::memcpy(&old_length, bytes_.data(), 8);
    std::uint64_t length = json.size();
    Bytes out(8 + json.size());
    std::memcpy(out.data(), &length, 8);
    std::memcpy(out.data() + 8, json.data(), json.size());
    std::memset(out.data() + kSumOffset, '0', kSumDigits);
    std::string sum = hex(xxh3_128(out));
    std::memcpy(out.data() + kSumOffset, sum.data(), kSumDigits);
    out.insert(
        out.end(),
        bytes_.begin() + static_cast<std::ptrdiff_t>(8 + old_length),
        bytes_.end()
    );
    return out;
  }

  std::string header_error(const std::string& from, const std::string& to) {
    return message(replaced(from, to), Code::kCorrupt);
  }

  ModelKey key_ = small_key();
  PagePool pool_;
  BlockPtr block_;
  Bytes bytes_;
};

// docs/block-format.md promises it for all formats to come.
static_assert(kSumOffset == 32);

TEST_F(BlockFormat, EveryLengthComesBack) {
  for (std::size_t n = 1; n <= kPageTokens; ++n) {
    build(n);
    auto page = read(bytes_);
    ASSERT_TRUE(page) << page.error().message;
    ASSERT_TRUE(page_is_right(key_.layout, **page, *block_)) << n;
  }
}

TEST_F(BlockFormat, AFullBlocksKvIsThePageAtAMultipleOf4096) {
  build(kPageTokens);
  PagePtr page = make_page(pool_, key_.layout, *block_);
  std::size_t offset = bytes_.size() - page->size();
  EXPECT_EQ(offset % 4096, 0u);
  EXPECT_EQ(std::memcmp(bytes_.data() + offset, page->data(), page->size()), 0);
}

TEST_F(BlockFormat, ColumnsWithoutATokenAreZero) {
  // 0xee in make_page stands for what another sequence left behind.
  std::size_t kv = bytes_.size() - key_.layout.block_bytes(64);
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t i = 3 * 2; i < 64 * 2; ++i) {
      ASSERT_EQ(bytes_[kv + row * 128 + i], std::byte{0}) << row << " " << i;
    }
  }
  std::size_t v = kv + key_.layout.v_offset(1, 64);
  for (std::size_t i = 3 * 8 * 4; i < 64 * 8 * 4; ++i) {
    ASSERT_EQ(bytes_[v + i], std::byte{0}) << i;
  }
}

TEST_F(BlockFormat, TruncatedAtEveryLengthIsAMiss) {
  for (std::size_t length = 0; length < bytes_.size(); ++length) {
    auto result = read(std::span(bytes_).first(length));
    ASSERT_FALSE(result) << length;
    ASSERT_EQ(result.error().code, Code::kCorrupt) << result.error().message;
  }
}

TEST_F(BlockFormat, EveryFlippedByteIsAMiss) {
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    Bytes flipped = bytes_;
    flipped[i] ^= std::byte{static_cast<unsigned char>(1u << (i % 8))};
    auto result = read(flipped);
    ASSERT_FALSE(result) << i;
    ASSERT_EQ(result.error().code, Code::kCorrupt) << result.error().message;
  }
}

TEST_F(BlockFormat, TrailingBytesAreAMiss) {
  Bytes longer = bytes_;
  longer.push_back(std::byte{0});
  EXPECT_EQ(
      message(longer, Code::kCorrupt),
      "file: " + std::to_string(longer.size()) + " bytes, its header says " +
          std::to_string(bytes_.size())
  );
}

TEST_F(BlockFormat, AbsurdHeaderLengthsAreMisses) {
  for (std::uint64_t length :
       {std::uint64_t{0},
        std::uint64_t{1},
        std::uint64_t{1} << 21,
        std::uint64_t{1} << 60,
        ~std::uint64_t{0}}) {
    Bytes bytes = bytes_;
    std::memcpy(bytes.data(), &length, 8);
    EXPECT_EQ(message(bytes, Code::kCorrupt).rfind("header: ", 0), 0u);
  }
}

TEST_F(BlockFormat, OtherKindsAreSkippedAndKept) {
  EXPECT_EQ(
      message(
          replaced("\"format\":\"1\"", "\"format\":\"2\""), Code::kUnsupported
      ),
      "format: 2, this build reads 1"
  );
  std::string print = hex(key_.fingerprint);
  EXPECT_EQ(
      message(replaced(print, "ff" + print.substr(2)), Code::kUnsupported),
      "fingerprint: another model's block"
  );
  std::string spec = hex(key_.spec);
  EXPECT_EQ(
      message(replaced(spec, "ff" + spec.substr(2)), Code::kUnsupported),
      "spec: computed in another way"
  );
}

TEST_F(BlockFormat, EachWrongFieldHasItsMessage) {
  std::string parent = block_->parent.hex();
  EXPECT_EQ(
      header_error(parent, "ff" + parent.substr(2)),
      "id: the file's name is not that of its content"
  );
  EXPECT_EQ(
      header_error(parent, "FF" + parent.substr(2)), "parent: not 64 hex digits"
  );
  EXPECT_EQ(
      header_error("\"start\":\"512\"", "\"start\":\"256\""),
      "id: the file's name is not that of its content"
  );
  for (const char* start : {"511", "0512", "-512", "", "5e2"}) {
    EXPECT_EQ(
        header_error(
            "\"start\":\"512\"", "\"start\":\"" + std::string(start) + "\""
        ),
        "start: not a multiple of 256"
    );
  }
  for (const char* n : {"0", "257", "03", "x", "99999999999999999999"}) {
    EXPECT_EQ(
        header_error("\"n\":\"3\"", "\"n\":\"" + std::string(n) + "\""),
        "n: not from 1 to 256"
    );
  }
  EXPECT_EQ(
      header_error("\"n\":\"3\"", "\"n\":\"4\""),
      "id: the file's name is not that of its content"
  );
  EXPECT_EQ(
      header_error("\"n\":\"3\"", "\"n\":\"2\""),
      "tokens: not 2 ids, then zeros"
  );
  EXPECT_EQ(
      header_error("\"n\":\"3\"", "\"n\":\"65\""),
      "layers.0.k: shape is not the model's"
  );
  EXPECT_EQ(
      header_error("\"sums\":\"", "\"sums\":\"0"),
      "sums: not one for each tensor"
  );
  EXPECT_EQ(
      header_error("\"spec\":", "\"spac\":"),
      "metadata: not the keys of format 1"
  );
  EXPECT_EQ(
      header_error("\"tokens\":", "\"takens\":"),
      "tensors: takens where tokens belongs"
  );
  EXPECT_EQ(header_error("\"U32\"", "\"I32\""), "tokens: dtype I32");
  EXPECT_EQ(header_error("\"F16\"", "\"BF16\""), "layers.0.k: dtype BF16");
  EXPECT_EQ(
      header_error("[2,8,64]", "[2,64,8]"),
      "layers.0.k: shape is not the model's"
  );
}

TEST_F(BlockFormat, EachWrongFieldOfTheTokensHasItsMessage) {
  EXPECT_EQ(
      header_error("\"shape\":[256]", "\"shape\":[255]"),
      "tokens: shape is not the model's"
  );
  EXPECT_EQ(
      header_error("\"shape\":[256]", "\"shape\":[1,256]"),
      "tokens: shape is not the model's"
  );
  EXPECT_EQ(header_error("[0,1024]", "[1,1024]"), "tokens: a gap before it");
  EXPECT_EQ(
      header_error("[0,1024]", "[0,1023]"),
      "tokens: data_offsets do not fit the shape"
  );
  // A token that is none, with sums that are right.
  std::uint64_t length;
  std::memcpy(&length, bytes_.data(), 8);
  auto words = std::span(bytes_).subspan(8 + length, kTokenBytes);
  auto sum_text = [&] {
    std::array<char, 17> text;
    std::snprintf(
        text.data(),
        text.size(),
        "%016llx",
        static_cast<unsigned long long>(xxh3_64(words))
    );
    return std::string(text.data());
  };
  std::string before = sum_text();
  words[2 * 4 + 3] = std::byte{0x80};
  EXPECT_EQ(header_error(before, sum_text()), "tokens: not 3 ids, then zeros");
}

TEST_F(BlockFormat, EachMissingPartHasItsMessage) {
  std::uint64_t length;
  std::memcpy(&length, bytes_.data(), 8);
  std::string json(reinterpret_cast<const char*>(bytes_.data()) + 8, length);
  std::size_t last = json.find(",\"layers.1.v\"");
  std::size_t end = json.find("}}", last) + 1;
  EXPECT_EQ(
      header_error(json.substr(last, end - last), ""),
      "tensors: 4, the model has 5"
  );
  EXPECT_EQ(
      header_error("\"format\":", "\"farmat\":"),
      "metadata: does not begin with sum and format"
  );
  EXPECT_EQ(
      header_error(",\"start\":\"512\"", ""),
      "metadata: not the keys of format 1"
  );
  std::size_t comma = json.find(',', json.find("\"sums\":"));
  EXPECT_EQ(
      header_error(
          json.substr(comma - 16, 17), json.substr(comma - 16, 16) + ";"
      ),
      "sums: not comma-separated hex"
  );
  // A header that ends before the 32 digits of its sum.
  std::uint64_t shorter = kSumOffset + kSumDigits - 8 - 1;
  Bytes bytes = bytes_;
  std::memcpy(bytes.data(), &shorter, 8);
  EXPECT_EQ(message(bytes, Code::kCorrupt), "header: too short for its sum");
  EXPECT_EQ(message(Bytes(7), Code::kCorrupt), "file: 7 bytes are no block");
}

TEST_F(BlockFormat, SumsAreCheckedTensorByTensor) {
  std::size_t kv = bytes_.size() - key_.layout.block_bytes(64);
  Bytes bytes = bytes_;
  bytes[kv - 1024] ^= std::byte{1};
  EXPECT_EQ(message(bytes, Code::kCorrupt), "tokens: bytes have another sum");
  bytes = bytes_;
  bytes[kv + key_.layout.v_offset(0, 64)] ^= std::byte{1};
  EXPECT_EQ(
      message(bytes, Code::kCorrupt), "layers.0.v: bytes have another sum"
  );
  bytes = bytes_;
  bytes[kSumOffset] ^= std::byte{1};
  EXPECT_EQ(
      message(bytes, Code::kCorrupt), "sum: the header's bytes have another"
  );
}

TEST_F(BlockFormat, HostileOffsetsAreMisses) {
  // layers.0.k lies at 1024..3072, layers.0.v at 3072..5120.
  EXPECT_EQ(header_error("[3072,5120]", "[3071,5120]"), "layers.0.v: overlaps");
  EXPECT_EQ(header_error("[3072,5120]", "[1024,3072]"), "layers.0.v: overlaps");
  EXPECT_EQ(
      header_error("[3072,5120]", "[3073,5120]"), "layers.0.v: a gap before it"
  );
  EXPECT_EQ(
      header_error("[3072,5120]", "[3072,5121]"),
      "layers.0.v: data_offsets do not fit the shape"
  );
  EXPECT_NE(
      header_error("[3072,5120]", "[3072,18446744073709551616]")
          .find("number too large"),
      std::string::npos
  );
}

TEST_F(BlockFormat, RepeatedNamesAreMisses) {
  EXPECT_EQ(
      header_error("\"layers.0.v\"", "\"layers.0.k\""),
      "header: tensor layers.0.k appears twice"
  );
  EXPECT_NE(
      header_error("\"spec\":", "\"parent\":").find("parent appears twice"),
      std::string::npos
  );
}

TEST_F(BlockFormat, OtherJsonThanOursIsAMiss) {
  EXPECT_NE(
      header_error("\"start\":\"512\"", "\"start\":\"\\u0035\"")
          .find("escape or non-ASCII"),
      std::string::npos
  );
  EXPECT_NE(
      header_error(",\"n\"", ", \"n\"").find("expected"), std::string::npos
  );
  EXPECT_NE(
      header_error("]}}", "]}} x").find("more than spaces"), std::string::npos
  );
  EXPECT_NE(header_error("]}}", "]}").find("expected }"), std::string::npos);
}

TEST_F(BlockFormat, PaddingByAnotherBoundaryIsAMiss) {
  std::uint64_t length;
  std::memcpy(&length, bytes_.data(), 8);
  std::string json(reinterpret_cast<const char*>(bytes_.data()) + 8, length);
  json.resize(json.size() + 4096, ' ');
  EXPECT_EQ(
      message(with_header(json), Code::kCorrupt),
      "header: padding does not put KV on its boundary"
  );
}

TEST_F(BlockFormat, AHeadTellsItsModel) {
  for (std::size_t n : {3, 200, 256}) {
    build(n);
    auto key = key_of_head(bytes_);
    ASSERT_TRUE(key) << key.error().message;
    EXPECT_EQ(key->folder(), key_.folder());
    EXPECT_EQ(key->layout.describe(), key_.layout.describe());
    EXPECT_TRUE(decode_block_head(*key, block_->id, bytes_, bytes_.size()).ok()
    );
    EXPECT_EQ(block_file_bytes(key_, *block_), bytes_.size());
  }
  build(3);
  auto error = [&](const std::string& from, const std::string& to) {
    auto key = key_of_head(replaced(from, to));
    return key ? "accepted" : key.error().message;
  };
  std::string print = hex(key_.fingerprint);
  EXPECT_EQ(
      error(print, "XX" + print.substr(2)), "fingerprint: not 64 hex digits"
  );
  std::string spec = hex(key_.spec);
  EXPECT_EQ(error(spec, spec.substr(1)), "spec: not 64 hex digits");
  EXPECT_EQ(error("\"F16\"", "\"F64\""), "layers.0.k: dtype F64");
  EXPECT_EQ(error("[2,8,64]", "[2,8]"), "layers.0.k: shape is no layer's");
  EXPECT_EQ(error("[2,64,8]", "[2,64,0]"), "layers.0.v: shape is no layer's");
  EXPECT_EQ(
      error("[2,8,64]", "[2,65537,64]"), "layers.0.k: shape is no layer's"
  );
  EXPECT_EQ(
      error("\"format\":\"1\"", "\"format\":\"2\""),
      "format: 2, this build reads 1"
  );
  Bytes bytes = bytes_;
  bytes[100] ^= std::byte{1};
  EXPECT_EQ(
      key_of_head(bytes).error().message, "sum: the header's bytes have another"
  );
}

TEST_F(BlockFormat, TheGoldenFileOfFormat1IsReadAndWrittenAlike) {
  build(70);
  std::string path = std::string(AFTERGLOW_SOURCE_DIR) +
                     "/src/store/testdata/format1-" + block_->id.hex() +
                     ".safetensors";
  if (std::getenv("AFTERGLOW_WRITE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary)
        .write(
            reinterpret_cast<const char*>(bytes_.data()),
            static_cast<std::streamsize>(bytes_.size())
        );
  }
  std::ifstream in(path, std::ios::binary);
  ASSERT_TRUE(in) << path;
  std::string golden((std::istreambuf_iterator<char>(in)), {});
  ASSERT_EQ(golden.size(), bytes_.size());
  EXPECT_EQ(std::memcmp(golden.data(), bytes_.data(), golden.size()), 0);
}

}  // namespace
}  // namespace afterglow
