#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "store/block_format.h"
#include "store/mlx_cache_file.h"

namespace afterglow {

/// The KV of a path of blocks in a cache directory, each part verified when it
/// is read. Safe while servers run: a block that is evicted meanwhile is an
/// error, never wrong data. Thread: one thread at a time.
class BlockFileSource : public KvSource {
 public:
  /// Reads the blocks' heads. `folder` is the model's (ModelKey::folder()),
  /// `length` counts tokens: the last block may be used in part.
  /// Errors: kNotFound when a block is gone; kCorrupt; the file system's.
  static Result<BlockFileSource> open(
      FileSystem& files,
      const std::string& folder,
      std::span<const BlockId> path,
      std::size_t length
  );

  const ModelKey& key() const { return key_; }
  const std::vector<Token>& tokens() const { return tokens_; }
  /// Below which the path lies.
  const BlockId& root() const { return root_; }

  Result<Part> read(std::size_t block, std::size_t layer) override;

 private:
  struct Stored {
    std::string file;
    std::size_t width = 0;
    std::uint64_t kv_offset = 0;
    std::vector<std::uint64_t> sums;
  };

  explicit BlockFileSource(FileSystem& files) : files_(&files) {}

  Status add(const std::string& folder, const BlockId& id, bool is_last);

  FileSystem* files_;
  ModelKey key_;
  BlockId root_;
  BlockId last_;
  std::vector<Token> tokens_;
  std::vector<Stored> blocks_;
  std::vector<std::byte> k_;  // of the last read
  std::vector<std::byte> v_;
};

}  // namespace afterglow
