#include "store/mlx_cache_file.h"

#include <bit>
#include <random>

#include "base/memory_file_system.h"
#include "store/mlx_cache_file_stamp.h"
#include "store/mlx_cache_file_values.h"
#include "store/testing.h"

namespace afterglow {
namespace {

using namespace testing;

using Bytes = std::vector<std::byte>;
using Pages = std::vector<std::shared_ptr<Page>>;

constexpr std::size_t kGoldenTokens = 5;

/// The value that testdata/make_mlx_caches.py gives an element; `token` from
/// the start of the prompt.
float golden_value(
    std::size_t layer,
    int is_v,
    std::size_t head,
    std::size_t token,
    std::size_t d
) {
  std::size_t eighths =
      layer + 2 * static_cast<std::size_t>(is_v) + 4 * head + token % 64 + d;
  return static_cast<float>(eighths) / 8;
}

std::uint32_t golden_bits(
    const KvLayout& layout,
    std::size_t layer,
    int is_v,
    std::size_t row,
    std::size_t token
) {
  const LayerKv& kv = layout.layers[layer];
  std::size_t dim = is_v != 0 ? kv.v_dim : kv.k_dim;
  float value = golden_value(layer, is_v, row / dim, token, row % dim);
  std::uint32_t bits = 0;
  EXPECT_TRUE(convert_kv(
      KvType::kF32, std::bit_cast<std::uint32_t>(value), kv.type, bits
  ));
  return bits;
}

/// Pages that hold the golden values; other bytes are 0xee.
Pages golden_pages(PagePool& pool, const KvLayout& layout, std::size_t tokens) {
  Pages pages;
  for (std::size_t first = 0; first < tokens; first += kPageTokens) {
    pages.push_back(pool.make());
    std::memset(pages.back()->data(), 0xee, pages.back()->size());
    for_each_element(
        layout,
        pages.back()->data(),
        std::min(kPageTokens, tokens - first),
        [&](auto layer, auto is_v, auto row, auto t, auto bytes) {
          std::uint32_t bits = golden_bits(layout, layer, is_v, row, first + t);
          std::memcpy(bytes.data(), &bits, bytes.size());
        }
    );
  }
  return pages;
}

bool pages_are_golden(
    const KvLayout& layout, const Pages& pages, std::size_t tokens
) {
  bool right = true;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    for_each_element(
        layout,
        pages[i]->data(),
        std::min(kPageTokens, tokens - i * kPageTokens),
        [&](auto layer, auto is_v, auto row, auto t, auto bytes) {
          std::uint32_t bits =
              golden_bits(layout, layer, is_v, row, i * kPageTokens + t);
          right = right && std::memcmp(bytes.data(), &bits, bytes.size()) == 0;
        }
    );
  }
  return right;
}

class PageSource : public KvSource {
 public:
  PageSource(const KvLayout& layout, const Pages& pages)
      : layout_(layout), pages_(pages) {}

  Result<Part> read(std::size_t block, std::size_t layer) override {
    if (block == fails_at) {
      return Error{Code::kCorrupt, "that block is damaged"};
    }
    const std::byte* page = pages_[block]->data();
    return Part{
        {page + layout_.k_offset(layer, kPageTokens),
         layout_.k_bytes(layer, kPageTokens)},
        {page + layout_.v_offset(layer, kPageTokens),
         layout_.v_bytes(layer, kPageTokens)},
        kPageTokens};
  }

  std::size_t fails_at = SIZE_MAX;

 private:
  const KvLayout& layout_;
  const Pages& pages_;
};

class MlxCache : public ::testing::Test {
 protected:
  MlxCache() : pool_(layout_.page_bytes()) {}

  MlxCacheStamp stamp_of(std::size_t tokens) const {
    return {key_.fingerprint, key_.spec, make_tokens(tokens, 3)};
  }

  Bytes written(
      std::size_t tokens,
      const MlxCacheNotes& notes =
          {{"model", "a/b"}, {"tokenizer_config", "{}"}}
  ) {
    Pages pages = golden_pages(pool_, layout_, tokens);
    PageSource source(layout_, pages);
    auto file = files_->open_or_create("f");
    EXPECT_TRUE(file && (*file)->truncate(0));
    EXPECT_TRUE(
        write_mlx_cache_file(**file, layout_, stamp_of(tokens), notes, source)
    );
    return read_file(*files_, "f");
  }

  Result<MlxCacheFile> open(std::span<const std::byte> bytes) {
    write_file(*files_, "f", bytes);
    return MlxCacheFile::open(*files_->open("f"), "dir/f");
  }

  static Bytes golden(const std::string& name) {
    std::string path = std::string(AFTERGLOW_SOURCE_DIR) +
                       "/src/store/testdata/mlx_cache_" + name + ".safetensors";
    auto file = open_user_file(path);
    EXPECT_TRUE(file) << path;
    Bytes bytes((*file)->info()->bytes);
    EXPECT_TRUE((*file)->read_at(0, bytes));
    return bytes;
  }

  Pages blank_pages(std::size_t tokens) {
    Pages pages;
    for (std::size_t i = 0; i < pages_for(tokens); ++i) {
      pages.push_back(pool_.make());
      std::memset(pages.back()->data(), 0xcc, pages.back()->size());
    }
    return pages;
  }

  /// What opening and reading the bytes is refused with.
  std::string refusal(std::span<const std::byte> bytes) {
    auto file = open(bytes);
    if (!file) {
      return file.error().message;
    }
    Pages pages = blank_pages(file->tokens());
    Status read = file->read(layout_, pages);
    return read ? "accepted" : read.error().message;
  }

  static std::string header_of(const Bytes& bytes) {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), 8);
    return {reinterpret_cast<const char*>(bytes.data()) + 8, length};
  }

  static Bytes with_header(const Bytes& bytes, const std::string& header) {
    std::uint64_t old_length = header_of(bytes).size();
    std::uint64_t length = header.size();
    Bytes out(8 + header.size());
    std::memcpy(out.data(), &length, 8);
    std::memcpy(out.data() + 8, header.data(), header.size());
    auto data = bytes.begin() + 8 + static_cast<std::ptrdiff_t>(old_length);
    out.insert(out.end(), data, bytes.end());
    return out;
  }

  static Bytes replaced(
      const Bytes& bytes, const std::string& from, const std::string& to
  ) {
    std::string header = header_of(bytes);
    std::size_t at = header.find(from);
    EXPECT_NE(at, std::string::npos) << from << " in " << header;
    return with_header(bytes, header.replace(at, from.size(), to));
  }

  ModelKey key_ = small_key();
  KvLayout layout_ = small_layout();
  PagePool pool_;
  MemoryDisk disk_;
  std::unique_ptr<FileSystem> files_ = disk_.file_system();
};

TEST_F(MlxCache, FilesOfMlxLmAreRead) {
  for (const char* name : {"f16", "bf16", "f32", "old"}) {
    auto file = open(golden(name));
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->tokens(), kGoldenTokens);
    EXPECT_FALSE(file->stamp());
    ASSERT_NE(file->header().find("model"), nullptr);
    EXPECT_EQ(*file->header().find("model"), "a/b");
    EXPECT_EQ(
        *file->header().find("tokenizer_config"),
        "{\"eos_token\": \"<\u00e9>\"}"
    );
    Pages pages = blank_pages(kGoldenTokens);
    Status read = file->read(layout_, pages);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_TRUE(pages_are_golden(layout_, pages, kGoldenTokens)) << name;
  }
}

TEST_F(MlxCache, OtherCachesOfMlxLmAreRefusedByName) {
  EXPECT_EQ(
      refusal(golden("rotating")),
      "[store.mlx_cache] dir/f: layer 0: a 'RotatingKVCache' cannot be taken "
      "over: it forgets old tokens; make it without --max-kv-size"
  );
  EXPECT_EQ(
      refusal(golden("quantized")),
      "[store.mlx_cache] dir/f: layer 0: a 'QuantizedKVCache' cannot be taken "
      "over: its KV is quantized; make it without --kv-bits"
  );
}

TEST_F(MlxCache, WhatIsWrittenIsReadBackAtEveryLength) {
  for (std::size_t tokens : {1, 63, 64, 255, 256, 257, 600}) {
    MlxCacheNotes notes{
        {"model", "org/\"name\" \u00e9\n"},
        {"tokenizer_config", "{\"a\": \"b\"}"}};
    auto file = open(written(tokens, notes));
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->tokens(), tokens);
    ASSERT_TRUE(file->stamp());
    EXPECT_EQ(file->stamp()->fingerprint, key_.fingerprint);
    EXPECT_EQ(file->stamp()->spec, key_.spec);
    EXPECT_EQ(file->stamp()->tokens, make_tokens(tokens, 3));
    EXPECT_EQ(*file->header().find("model"), notes[0].second);
    EXPECT_EQ(*file->header().find("tokenizer_config"), notes[1].second);
    Pages pages = blank_pages(tokens);
    ASSERT_TRUE(file->read(layout_, pages));
    EXPECT_TRUE(pages_are_golden(layout_, pages, tokens)) << tokens;
  }
}

TEST_F(MlxCache, AFailingSourceFailsTheWriteBeforeThereIsAHeader) {
  Pages pages = golden_pages(pool_, layout_, 600);
  PageSource source(layout_, pages);
  source.fails_at = 2;
  auto file = files_->create("g");
  ASSERT_TRUE(file);
  Status written =
      write_mlx_cache_file(**file, layout_, stamp_of(600), {}, source);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, "that block is damaged");
  EXPECT_FALSE(MlxCacheFile::open(std::move(*file), "g"));
}

TEST_F(MlxCache, AnotherModelsLayoutIsNamed) {
  auto file = open(golden("f16"));
  ASSERT_TRUE(file);
  auto message = [&](auto change) {
    KvLayout layout = small_layout();
    change(layout);
    Status status = file->check_layout(layout);
    return status ? "fits" : status.error().message;
  };
  std::string tail = "; the file is another model's";
  std::string head = "[store.mlx_cache] dir/f: ";
  EXPECT_EQ(message([](KvLayout&) {}), "fits");
  EXPECT_EQ(
      message([](KvLayout& layout) { layout.layers.pop_back(); }),
      head + "2 layers, but the model has 1" + tail
  );
  EXPECT_EQ(
      message([](KvLayout& layout) { layout.layers[1].kv_heads = 2; }),
      head +
          "layer 1: 1 heads of 4 and 8, but the model has 2 heads of 4 and "
          "8" +
          tail
  );
  EXPECT_EQ(
      message([](KvLayout& layout) { layout.layers[0].v_dim = 16; }),
      head +
          "layer 0: 2 heads of 8 and 8, but the model has 2 heads of 8 and "
          "16" +
          tail
  );
  EXPECT_EQ(
      message([](KvLayout& layout) { layout.layers[0].window = 64; }),
      head +
          "layer 0: the model's attention has a window there, which plain "
          "KV cannot stand for"
  );
}

TEST_F(MlxCache, EachKindOfDamageHasItsMessage) {
  Bytes file = golden("f16");
  auto message = [&](const std::string& from, const std::string& to) {
    std::string text = refusal(replaced(file, from, to));
    std::string head = "[store.mlx_cache] dir/f: ";
    EXPECT_EQ(text.substr(0, head.size()), head);
    return text.substr(std::min(head.size(), text.size()));
  };
  EXPECT_EQ(message("{", "["), "header: not a JSON object");
  EXPECT_EQ(message("\"1.2\"", "\"1.1\""), "header: '1.1' appears twice");
  EXPECT_EQ(message("1,1,8,4", "1,1,[[8]],4"), "header: nested too deep");
  EXPECT_EQ(
      message("__metadata__", "metadata"),
      "__metadata__: missing; this is no prompt cache of mlx_lm"
  );
  EXPECT_EQ(message("\"a/b\"", "7"), "__metadata__ '0.model': not a string");
  EXPECT_EQ(
      message("\"1.0\":\"KVCache\"", "\"1.0\":\"os.system\""),
      "layer 0: a 'os.system' is no cache that this version knows"
  );
  EXPECT_EQ(
      message("\"1.0\":\"KVCache\"", "\"1.9\":\"KVCache\""),
      "__metadata__: no list of layers as mlx_lm writes it"
  );
  EXPECT_EQ(message("\"2.2.0\"", "\"2.3.0\""), "__metadata__ 2.2: missing");
  EXPECT_EQ(message("\"scalar\"", "\"string\""), "__metadata__ 2.1: no scalar");
  EXPECT_EQ(
      message("\"2.2.0\":\"1.2\"", "\"2.2.0\":\"0.2\""),
      "__metadata__ 2: array 1.2 is not listed"
  );
  EXPECT_EQ(
      message("\"2.0\":\"\"", "\"2.0\":\"\",\"3.x\":\"\""),
      "__metadata__ '3.x': not as mlx_lm writes it"
  );
  EXPECT_EQ(
      message("\"dtype\":\"F16\"", "\"dtype\":\"F64\""),
      "array '0.0': type 'F64'; F16, BF16 and F32 are read"
  );
  EXPECT_EQ(
      message("\"dtype\":\"F16\"", "\"type\":\"F16\""),
      "array '0.0': expected dtype, shape and data_offsets"
  );
  EXPECT_EQ(
      message("[1,2,8,8]", "\"all\""),
      "array '0.0': dtype, shape or data_offsets of a wrong kind"
  );
  EXPECT_EQ(
      message("[1,2,8,8]", "[1,2,-8,8]"),
      "array '0.0': shape: expected a whole number"
  );
  EXPECT_EQ(
      message("[1,2,8,8]", "[1,2,99999999999,8]"), "array '0.0': absurd shape"
  );
  EXPECT_EQ(
      message("[1,2,8,8]", "[2147483648,2147483648,8,8]"),
      "array '0.0': absurd shape"
  );
  EXPECT_EQ(
      message("[1,2,8,8]", "[1,2,8,9]"),
      "array '0.0': data_offsets do not fit its shape"
  );
  EXPECT_EQ(
      message("[456,712]", "[712,456]"),
      "array '0.0': data_offsets do not fit its shape"
  );
  EXPECT_EQ(message("[456,712]", "[457,713]"), "array '0.0': a gap before it");
  EXPECT_EQ(message("[456,712]", "[400,656]"), "array '0.0': overlaps another");
  EXPECT_EQ(
      message("[1,2,8,8]", "[2,1,8,8]"),
      "layer 0: shape is not [1, kv_heads, tokens, dim]"
  );
  EXPECT_EQ(
      message("[1,2,8,8]", "[1,1,16,8]"), "layer 0: K and V of different shape"
  );
  EXPECT_EQ(message("\"1.2\":{", "\"1.3\":{"), "array '1.2': missing");
  EXPECT_EQ(
      message("I32\",\"shape\":[]", "F32\",\"shape\":[]"),
      "layer 0: its number of tokens is not a whole number"
  );
  EXPECT_EQ(
      message(
          "\"dtype\":\"F16\",\"shape\":[1,2,8,8]",
          "\"dtype\":\"I32\",\"shape\":[1,2,4,8]"
      ),
      "layer 0: KV of type I32"
  );
}

TEST_F(MlxCache, WrongNumbersOfTokensAreNamed) {
  Bytes file = golden("f16");
  std::size_t data_at = 8 + header_of(file).size();
  auto message = [&](std::size_t at, std::byte count) {
    Bytes bytes = file;
    bytes[data_at + at] =
        count;  // the int32 of layer 1 at 0, of layer 0 at 196
    return refusal(bytes);
  };
  std::string head = "[store.mlx_cache] dir/f: ";
  EXPECT_EQ(
      message(0, std::byte{9}), head + "layer 1: 9 tokens, but room for 8"
  );
  EXPECT_EQ(
      message(0, std::byte{0}), head + "layer 1: 0 tokens, but room for 8"
  );
  EXPECT_EQ(
      message(196, std::byte{4}), head + "layer 1: 5 tokens, but layer 0 has 4"
  );
}

TEST_F(MlxCache, ValuesThatAreNotFiniteAreNamed) {
  Bytes file = golden("f16");
  std::size_t data_at = 8 + header_of(file).size();
  // The second element of token 3 in head 0 of layer 0's K.
  std::size_t at = data_at + 456 + (3 * 8 + 1) * 2;
  file[at] = std::byte{0};
  file[at + 1] = std::byte{0x7c};
  EXPECT_EQ(
      refusal(file),
      "[store.mlx_cache] dir/f: array '0.0': token 3: the value inf does not "
      "fit F16"
  );
}

TEST_F(MlxCache, APrefixOfAFileIsRefusedAtEveryLength) {
  for (const Bytes& file : {golden("f16"), written(3)}) {
    ASSERT_EQ(refusal(file), "accepted");
    for (std::size_t length = 0; length < file.size(); ++length) {
      ASSERT_NE(refusal(std::span(file).first(length)), "accepted") << length;
    }
    Bytes longer = file;
    longer.push_back({});
    EXPECT_NE(refusal(longer), "accepted");
  }
}

TEST_F(MlxCache, AbsurdHeaderLengthsAreRefusedBeforeAnythingIsRead) {
  Bytes file = golden("f16");
  std::uint64_t length = std::uint64_t{1} << 60;
  std::memcpy(file.data(), &length, 8);
  EXPECT_EQ(
      refusal(file),
      "[store.mlx_cache] dir/f: header: 1152921504606846976 bytes, but the "
      "file has " +
          std::to_string(file.size())
  );
}

TEST_F(MlxCache, AFileOfAnotherKindIsSaidToBeNoSafetensorsFile) {
  for (std::string text :
       {"root:x:0:0:root:/root:/bin/bash\n",
        "GGUF\x03\x01\x01\x01\x01\x01\x01\x01\x01",
        "12345678"}) {
    auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    EXPECT_EQ(
        refusal(bytes),
        "[store.mlx_cache] dir/f: not a safetensors file, which holds its "
        "header's length and then the header, that begins with '{'"
    ) << text;
  }
}

TEST_F(MlxCache, EveryFlippedBitOfAStampedFileIsNoticed) {
  Bytes file = written(3);
  ASSERT_EQ(refusal(file), "accepted");
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes bytes = file;
      bytes[at] ^= static_cast<std::byte>(1 << bit);
      ASSERT_NE(refusal(bytes), "accepted") << "byte " << at << " bit " << bit;
    }
  }
}

TEST_F(MlxCache, RandomDamageOfAStampedFileIsNoticed) {
  Bytes file = written(300);
  std::mt19937_64 random(20);
  for (int round = 0; round < 3000; ++round) {
    Bytes bytes = file;
    for (std::uint64_t left = 1 + random() % 8; left > 0; --left) {
      // As often in the header as in the much larger data.
      std::size_t size =
          random() % 2 == 0 ? header_of(file).size() : file.size();
      std::size_t at = random() % size;
      if (random() % 4 == 0) {
        std::size_t count = std::min<std::size_t>(1 + random() % 64, size - at);
        std::fill_n(
            bytes.begin() + static_cast<std::ptrdiff_t>(at),
            count,
            static_cast<std::byte>(random())
        );
      } else {
        bytes[at] ^= static_cast<std::byte>(1 << random() % 8);
      }
    }
    if (bytes != file) {
      ASSERT_NE(refusal(bytes), "accepted") << "seed 20, round " << round;
    }
  }
}

TEST_F(MlxCache, DamageOfAnUnstampedFileStaysInBounds) {
  std::mt19937_64 random(21);
  for (const char* name : {"f16", "f32", "old", "rotating", "quantized"}) {
    Bytes file = golden(name);
    for (int round = 0; round < 2000; ++round) {
      Bytes bytes = file;
      for (std::uint64_t left = 1 + random() % 4; left > 0; --left) {
        bytes[random() % bytes.size()] = static_cast<std::byte>(random());
      }
      auto cache = open(bytes);
      if (cache) {
        // Its five tokens are in every layer's room of eight.
        ASSERT_LE(cache->tokens(), 8u);
        Pages pages = blank_pages(cache->tokens());
        if (cache->read(layout_, pages)) {
          std::uint32_t untouched = 0;
          std::memcpy(
              &untouched,
              pages[0]->data() + layout_.k_offset(0, kPageTokens) + 8 * 2,
              4
          );
          ASSERT_EQ(untouched, 0xccccccccu);
        }
      }
    }
  }
}

TEST_F(MlxCache, AStampInPartIsRefused) {
  Bytes file = written(3);
  for (const char* key : {"sums", "fingerprint", "spec", "tokens"}) {
    std::string from = std::string("0.afterglow.") + key + "\"";
    EXPECT_EQ(
        refusal(replaced(file, from, std::string("0.other.") + key + "\"")),
        std::string("[store.mlx_cache] dir/f: afterglow.") + key + ": missing"
    );
  }
}

TEST_F(MlxCache, ARightSumDoesNotExcuseAWrongStamp) {
  auto resealed = [&](const std::string& from, const std::string& to) {
    std::string header = header_of(replaced(written(3), from, to));
    set_stamp_sum(header, stamp_sum(header));
    return refusal(with_header(written(3), header));
  };
  std::string head = "[store.mlx_cache] dir/f: ";
  EXPECT_EQ(resealed("{", "{"), "accepted");
  std::string first = std::to_string(make_tokens(3, 3)[0]);
  EXPECT_EQ(
      resealed("tokens\":\"" + first + " ", "tokens\":\""),
      head + "layer 0: another number of tokens than afterglow.tokens"
  );
  for (const char* bad : {"", "1  2", "1 2 ", "-2", "1 x", "99999999999"}) {
    std::string tokens = "tokens\":\"" + std::string(bad) + "\",\"0.x\":\"";
    EXPECT_EQ(
        resealed("tokens\":\"", tokens),
        head + "afterglow.tokens: not in its form"
    ) << bad;
  }
}

}  // namespace
}  // namespace afterglow
