#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "base/page.h"
#include "store/block_format.h"

namespace afterglow {

/// A block file in memory, ready to be written. For a full block kv points
/// into the page, which must outlive it.
struct BlockImage {
  std::vector<std::byte> head;
  std::vector<std::byte> gathered;  // a tail's narrower KV
  std::span<const std::byte> kv;

  std::uint64_t bytes() const { return head.size() + kv.size(); }
};

/// Sums the block's KV and lays its file out. Columns of a tail that hold no
/// token are written as zeros.
BlockImage make_block_image(
    const ModelKey& key, const Block& block, const Page& page
);

/// Reads and verifies a block file's head: one read, or two for a head of
/// unexpected size.
/// Errors: as decode_block_head, and those of the file system.
Result<BlockHead> read_block_head(
    const ModelKey& key, const BlockId& name, const File& file
);

/// Reads KV into the page and verifies it tensor by tensor; for a full block
/// without a copy. Columns of a tail beyond its width keep what the page held.
/// Errors: kCorrupt, naming the tensor; those of the file system.
Status read_block_kv(
    const ModelKey& key, const BlockHead& head, const File& file, Page& page
);

/// A block file's head and the model that it names itself.
struct AnyHead {
  ModelKey key;
  BlockHead head;
};

/// The same as read_block_head for a file of any model.
Result<AnyHead> read_any_head(const BlockId& name, const File& file);

/// Runs a read of a block, and once more when what came looks corrupt: the
/// fault may have been on the way.
template <class Read>
auto read_twice(Read read) {
  auto first = read();
  return first || first.error().code != Code::kCorrupt ? first : read();
}

/// The parent and start of a block file of any model.
Result<ForeignHead> read_foreign_head(const File& file);

}  // namespace afterglow
