#include "store/block_io.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace afterglow {

namespace {

constexpr std::size_t kHeadGuess = 4 * kKvAlignment;
/// Read and summed piece by piece, so that bytes are summed while still in
/// the second-level cache.
constexpr std::size_t kReadPiece = std::size_t{256} << 10;

/// Calls visit(page offset, packed offset, bytes) for each run of bytes that
/// a page and a narrower block have in common: the first n tokens of each row
/// of K, and of each head of V.
template <class Visit>
void for_each_run(
    const KvLayout& layout, std::size_t n, std::size_t width, Visit visit
) {
  for (std::size_t i = 0; i < layout.layers.size(); ++i) {
    const LayerKv& kv = layout.layers[i];
    std::size_t element = size_of(kv.type);
    std::size_t page_at = layout.k_offset(i, kPageTokens);
    std::size_t packed_at = layout.k_offset(i, width);
    for (std::size_t row = 0; row < std::size_t{kv.kv_heads} * kv.k_dim;
         ++row) {
      visit(page_at, packed_at, n * element);
      page_at += kPageTokens * element;
      packed_at += width * element;
    }
    std::size_t token_bytes = kv.v_dim * element;
    page_at = layout.v_offset(i, kPageTokens);
    packed_at = layout.v_offset(i, width);
    for (std::size_t head = 0; head < kv.kv_heads; ++head) {
      visit(page_at, packed_at, n * token_bytes);
      page_at += kPageTokens * token_bytes;
      packed_at += width * token_bytes;
    }
  }
}

/// Sizes of all KV tensors at a width, in file order.
std::vector<std::size_t> tensor_sizes(
    const KvLayout& layout, std::size_t width
) {
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < layout.layers.size(); ++i) {
    sizes.push_back(layout.k_bytes(i, width));
    sizes.push_back(layout.v_bytes(i, width));
  }
  return sizes;
}

std::string tensor_name(std::size_t index) {
  return "layers." + std::to_string(index / 2) + (index % 2 ? ".v" : ".k");
}

Error ends_early(std::uint64_t offset) {
  return {
      Code::kCorrupt, "file: ends early, after byte " + std::to_string(offset)};
}

/// Reads exactly out.size() bytes.
Status read_all(
    const File& file, std::uint64_t offset, std::span<std::byte> out
) {
  Result<std::size_t> count = file.read_at(offset, out);
  if (!count) {
    return count.error();
  }
  return *count == out.size() ? Status() : ends_early(offset + *count);
}

/// Reads KV at the file's width into out and verifies each tensor.
Status read_summed(
    const KvLayout& layout,
    const BlockHead& head,
    const File& file,
    std::span<std::byte> out
) {
  std::vector<std::size_t> sizes = tensor_sizes(layout, head.width);
  std::size_t have = 0;   // bytes read
  std::size_t begin = 0;  // of the tensor to verify next
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::size_t end = begin + sizes[i];
    if (end > have) {
      std::size_t target =
          std::min(out.size(), std::max(end, have + kReadPiece));
      Status read = read_all(
          file, head.kv_offset + have, out.subspan(have, target - have)
      );
      if (!read) {
        return read;
      }
      have = target;
    }
    if (xxh3_64(out.subspan(begin, sizes[i])) != head.kv_sums[i]) {
      return Error{Code::kCorrupt, tensor_name(i) + ": bytes have another sum"};
    }
    begin = end;
  }
  return {};
}

/// The file's bytes before its KV, at least; not verified.
Result<std::vector<std::byte>> read_head_bytes(
    const File& file, std::uint64_t file_bytes
) {
  std::size_t guess =
      static_cast<std::size_t>(std::min<std::uint64_t>(file_bytes, kHeadGuess));
  if (guess < 8) {
    return Error{
        Code::kCorrupt,
        "file: " + std::to_string(file_bytes) + " bytes are no block"};
  }
  std::vector<std::byte> bytes(guess);
  if (Status read = read_all(file, 0, bytes); !read) {
    return read.error();
  }
  auto needed = needed_head_bytes(std::span(bytes).first<8>(), file_bytes);
  if (!needed) {
    return needed.error();
  }
  if (*needed > guess) {
    bytes.resize(*needed);
    Status read = read_all(file, guess, std::span(bytes).subspan(guess));
    if (!read) {
      return read.error();
    }
  }
  return bytes;
}

}  // namespace

BlockImage make_block_image(
    const ModelKey& key, const Block& block, const Page& page
) {
  const KvLayout& layout = key.layout;
  CHECK(page.size() == layout.page_bytes());
  std::size_t n = block.tokens.size();
  std::size_t width = KvLayout::width_for(n);
  BlockImage image;
  image.kv = std::span(page.data(), page.size());
  if (n < kPageTokens) {
    image.gathered.resize(layout.block_bytes(width));
    for_each_run(
        layout,
        n,
        width,
        [&](std::size_t from, std::size_t to, std::size_t c) {
          std::memcpy(image.gathered.data() + to, page.data() + from, c);
        }
    );
    image.kv = image.gathered;
  }
  std::vector<std::uint64_t> sums;
  std::size_t at = 0;
  for (std::size_t bytes : tensor_sizes(layout, width)) {
    sums.push_back(xxh3_64(image.kv.subspan(at, bytes)));
    at += bytes;
  }
  image.head = encode_block_head(key, block, sums);
  return image;
}

Result<BlockHead> read_block_head(
    const ModelKey& key, const BlockId& name, const File& file
) {
  Result<FileInfo> info = file.info();
  if (!info) {
    return info.error();
  }
  auto bytes = read_head_bytes(file, info->bytes);
  if (!bytes) {
    return bytes.error();
  }
  return decode_block_head(key, name, *bytes, info->bytes);
}

Status read_block_kv(
    const ModelKey& key, const BlockHead& head, const File& file, Page& page
) {
  const KvLayout& layout = key.layout;
  CHECK(page.size() == layout.page_bytes());
  if (head.width == kPageTokens) {
    return read_summed(layout, head, file, std::span(page.data(), page.size()));
  }
  std::vector<std::byte> packed(layout.block_bytes(head.width));
  if (Status read = read_summed(layout, head, file, packed); !read) {
    return read;
  }
  for_each_run(
      layout,
      head.width,
      head.width,
      [&](std::size_t to, std::size_t from, std::size_t count) {
        std::memcpy(page.data() + to, packed.data() + from, count);
      }
  );
  return {};
}

Result<AnyHead> read_any_head(const BlockId& name, const File& file) {
  Result<FileInfo> info = file.info();
  if (!info) {
    return info.error();
  }
  auto bytes = read_head_bytes(file, info->bytes);
  if (!bytes) {
    return bytes.error();
  }
  auto key = key_of_head(*bytes);
  if (!key) {
    return key.error();
  }
  auto head = decode_block_head(*key, name, *bytes, info->bytes);
  if (!head) {
    return head.error();
  }
  return AnyHead{std::move(*key), std::move(*head)};
}

Result<ForeignHead> read_foreign_head(const File& file) {
  Result<FileInfo> info = file.info();
  if (!info) {
    return info.error();
  }
  auto bytes = read_head_bytes(file, info->bytes);
  if (!bytes) {
    return bytes.error();
  }
  return decode_foreign_head(*bytes);
}

}  // namespace afterglow
