#include "kv/block.h"

#include <gtest/gtest.h>

namespace afterglow {
namespace {

const std::vector<Token> kTokens{1, 2, 3};

TEST(Block, IdIsTheNamedHash) {
  BlockId parent;
  parent.bytes.fill(7);
  std::vector<std::uint8_t> stream(32, 7);
  stream.insert(stream.end(), {0, 1, 0, 0, 0, 0, 0, 0});  // start 256
  stream.insert(stream.end(), {3, 0, 0, 0});
  stream.insert(stream.end(), {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0});
  BlockId expected{Sha256().bytes(std::as_bytes(std::span(stream))).finish()};
  EXPECT_EQ(block_id(parent, 256, kTokens), expected);
  EXPECT_EQ(make_block(parent, 256, kTokens)->id, expected);
}

TEST(Block, EveryFieldChangesTheId) {
  BlockId parent;
  BlockId other;
  other.bytes[31] = 1;
  BlockId id = block_id(parent, 0, kTokens);
  EXPECT_NE(id, block_id(other, 0, kTokens));
  EXPECT_NE(id, block_id(parent, 256, kTokens));
  EXPECT_NE(id, block_id(parent, 0, std::vector<Token>{1, 2}));
  EXPECT_NE(id, block_id(parent, 0, std::vector<Token>{1, 2, 4}));
}

TEST(Block, RootsDifferByModelSpecAndNamespace) {
  Sha256Digest a{};
  Sha256Digest b{};
  b[0] = 1;
  BlockId id = root_id(a, a, "");
  EXPECT_NE(id, root_id(b, a, ""));
  EXPECT_NE(id, root_id(a, b, ""));
  EXPECT_NE(id, root_id(a, a, "tenant"));
  EXPECT_EQ(id, root_id(a, a, ""));
}

TEST(Block, HexRoundTripAndWhatIsRefused) {
  BlockId id = block_id({}, 0, kTokens);
  std::string hex = id.hex();
  ASSERT_EQ(hex.size(), 64u);
  EXPECT_EQ(BlockId::parse(hex).value(), id);
  auto refused = [](std::string text) {
    auto result = BlockId::parse(text);
    return !result.ok() && result.error().code == Code::kInvalidArgument;
  };
  EXPECT_TRUE(refused(""));
  EXPECT_TRUE(refused(hex.substr(1)));
  EXPECT_TRUE(refused(hex + "0"));
  for (char bad : {'A', 'g', '/', ':', '`', ' ', '\0'}) {
    std::string text = hex;
    text[63] = bad;
    EXPECT_TRUE(refused(text)) << bad;
    text = hex;
    text[0] = bad;
    EXPECT_TRUE(refused(text)) << bad;
  }
}

}  // namespace
}  // namespace afterglow
