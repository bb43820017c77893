#include "store/mlx_cache_file_blocks.h"

#include "base/check.h"
#include "store/block_io.h"
#include "store/disk_files.h"

namespace afterglow {

namespace {

Error at_fault(const std::string& file, const Error& error) {
  if (error.code == Code::kNotFound) {
    return {
        Code::kNotFound,
        "[store.export] " + file +
            ": gone; the entry was evicted. Pin entries that must stay"};
  }
  return {error.code, "[store.export] " + file + ": " + error.message};
}

}  // namespace

Result<BlockFileSource> BlockFileSource::open(
    FileSystem& files,
    const std::string& folder,
    std::span<const BlockId> path,
    std::size_t length
) {
  CHECK(length > 0 && path.size() == pages_for(length));
  BlockFileSource source(files);
  for (std::size_t i = 0; i < path.size(); ++i) {
    Status added = source.add(folder, path[i], i + 1 == path.size());
    if (!added) {
      return added.error();
    }
  }
  if (source.tokens_.size() < length) {
    return Error{
        Code::kCorrupt,
        "[store.export] the entry has " + std::to_string(length) +
            " tokens, but its blocks hold " +
            std::to_string(source.tokens_.size())};
  }
  source.tokens_.resize(length);
  return source;
}

Status BlockFileSource::add(
    const std::string& folder, const BlockId& id, bool is_last
) {
  Stored stored;
  stored.file = block_path(folder, id);
  auto file = files_->open(stored.file);
  if (!file) {
    return at_fault(stored.file, file.error());
  }
  auto any = read_any_head(id, **file);
  if (!any) {
    return at_fault(stored.file, any.error());
  }
  const Block& block = *any->head.block;
  bool is_first = blocks_.empty();
  bool follows = is_first ? block.start == 0
                          : block.parent == last_ &&
                                block.start == blocks_.size() * kPageTokens;
  if (!follows || any->key.folder() != folder || (!block.full() && !is_last)) {
    return at_fault(
        stored.file, {Code::kCorrupt, "not the block that follows the others"}
    );
  }
  if (is_first) {
    key_ = any->key;
    root_ = block.parent;
  }
  stored.width = any->head.width;
  stored.kv_offset = any->head.kv_offset;
  stored.sums = any->head.kv_sums;
  tokens_.insert(tokens_.end(), block.tokens.begin(), block.tokens.end());
  last_ = id;
  blocks_.push_back(std::move(stored));
  return {};
}

Result<KvSource::Part> BlockFileSource::read(
    std::size_t block, std::size_t layer
) {
  const Stored& stored = blocks_.at(block);
  const KvLayout& layout = key_.layout;
  auto file = files_->open(stored.file);
  if (!file) {
    return at_fault(stored.file, file.error());
  }
  auto read = [&](std::uint64_t offset,
                  std::size_t bytes,
                  std::uint64_t sum,
                  std::vector<std::byte>& out) -> Status {
    out.resize(bytes);
    auto count = (*file)->read_at(stored.kv_offset + offset, out);
    if (!count) {
      return at_fault(stored.file, count.error());
    }
    if (*count != bytes || xxh3_64(out) != sum) {
      return at_fault(
          stored.file,
          {Code::kCorrupt,
           "layer " + std::to_string(layer) +
               ": bytes have another sum. Type: afterglow cache verify"}
      );
    }
    return {};
  };
  std::size_t width = stored.width;
  Status done = read(
      layout.k_offset(layer, width),
      layout.k_bytes(layer, width),
      stored.sums[2 * layer],
      k_
  );
  if (done) {
    done = read(
        layout.v_offset(layer, width),
        layout.v_bytes(layer, width),
        stored.sums[2 * layer + 1],
        v_
    );
  }
  if (!done) {
    return done.error();
  }
  return Part{k_, v_, width};
}

}  // namespace afterglow
