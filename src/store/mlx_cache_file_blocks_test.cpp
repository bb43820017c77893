#include "store/mlx_cache_file_blocks.h"

#include "base/memory_file_system.h"
#include "store/testing.h"

namespace afterglow {
namespace {

using namespace testing;

class BlockSource : public ::testing::Test {
 protected:
  /// Writes the prompt's blocks as a store does; returns their ids.
  std::vector<BlockId> write(std::size_t tokens) {
    Process process(disk_.file_system());
    prompt_ = make_tokens(tokens, 9);
    process.serve(prompt_);
    EXPECT_TRUE(process.flush().complete);
    return process.cache().entries().at(0).path;
  }
  std::string file_of(const BlockId& id) const {
    return "v1/" + key_.folder() + "/blocks/" + block_file_name(id);
  }

  MemoryDisk disk_;
  std::unique_ptr<FileSystem> files_ = disk_.file_system();
  ModelKey key_ = small_key();
  std::vector<Token> prompt_;
};

TEST_F(BlockSource, GivesEachLayerOfEachBlockAsThePageHoldsIt) {
  std::vector<BlockId> path = write(600);
  auto source = BlockFileSource::open(*files_, key_.folder(), path, 580);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(source->key().folder(), key_.folder());
  EXPECT_EQ(source->root(), root_of(key_));
  EXPECT_EQ(
      source->tokens(), std::vector<Token>(prompt_.begin(), prompt_.end() - 20)
  );
  PagePool pool(key_.layout.page_bytes());
  BlockId parent = root_of(key_);
  for (std::size_t i = 0; i < path.size(); ++i) {
    std::size_t n = std::min(kPageTokens, prompt_.size() - i * kPageTokens);
    BlockPtr block = make_block(
        parent, i * kPageTokens, std::span(prompt_).subspan(i * kPageTokens, n)
    );
    std::shared_ptr<Page> page = pool.make();
    for (std::size_t layer = 0; layer < 2; ++layer) {
      auto part = source->read(i, layer);
      ASSERT_TRUE(part) << part.error().message;
      ASSERT_EQ(part->width, KvLayout::width_for(n));
      // Rows of K are as wide as the block; V's rows are of one token.
      const LayerKv& kv = key_.layout.layers[layer];
      std::size_t element = size_of(kv.type);
      for (std::size_t row = 0; row < kv.kv_heads * kv.k_dim; ++row) {
        std::memcpy(
            page->data() + key_.layout.k_offset(layer, kPageTokens) +
                row * kPageTokens * element,
            part->k.data() + row * part->width * element,
            n * element
        );
      }
      for (std::size_t head = 0; head < kv.kv_heads; ++head) {
        std::memcpy(
            page->data() + key_.layout.v_offset(layer, kPageTokens) +
                head * kPageTokens * kv.v_dim * element,
            part->v.data() + head * part->width * kv.v_dim * element,
            n * kv.v_dim * element
        );
      }
    }
    EXPECT_TRUE(page_is_right(key_.layout, *page, *block)) << i;
    parent = block->id;
  }
}

TEST_F(BlockSource, AMissingBlockIsNamedAtOpenAndAtRead) {
  std::vector<BlockId> path = write(600);
  auto source = BlockFileSource::open(*files_, key_.folder(), path, 600);
  ASSERT_TRUE(source);
  ASSERT_TRUE(files_->remove(file_of(path[1])));
  std::string message = "[store.export] " + file_of(path[1]) +
                        ": gone; the entry was evicted. Pin entries that must "
                        "stay";
  EXPECT_TRUE(source->read(0, 0));
  EXPECT_EQ(source->read(1, 0).error().message, message);
  auto again = BlockFileSource::open(*files_, key_.folder(), path, 600);
  EXPECT_EQ(again.error().message, message);
}

TEST_F(BlockSource, DamagedKvIsNoticedAsItIsRead) {
  std::vector<BlockId> path = write(300);
  std::vector<std::byte> bytes = read_file(*files_, file_of(path[0]));
  bytes.back() ^= std::byte{1};  // the last layer's V
  write_file(*files_, file_of(path[0]), bytes);
  auto source = BlockFileSource::open(*files_, key_.folder(), path, 300);
  ASSERT_TRUE(source);
  EXPECT_TRUE(source->read(0, 0));
  auto damaged = source->read(0, 1);
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code, Code::kCorrupt);
  EXPECT_EQ(
      damaged.error().message,
      "[store.export] " + file_of(path[0]) +
          ": layer 1: bytes have another sum. Type: afterglow cache verify"
  );
}

TEST_F(BlockSource, BlocksThatDoNotFollowEachOtherAreRefused) {
  std::vector<BlockId> path = write(600);
  std::swap(path[0], path[1]);
  auto source = BlockFileSource::open(*files_, key_.folder(), path, 600);
  ASSERT_FALSE(source);
  EXPECT_EQ(
      source.error().message,
      "[store.export] " + file_of(path[0]) +
          ": not the block that follows the others"
  );
}

}  // namespace
}  // namespace afterglow
