#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/kv_layout.h"
#include "base/result.h"
#include "kv/block.h"
#include "store/tensor_header.h"

namespace afterglow {

// The block file, format 1. To the byte: docs/block-format.md.

inline constexpr std::string_view kBlockFormat = "1";
/// File offset of the first KV byte is a multiple of this, so that KV can be
/// read straight into a page, also with O_DIRECT.
inline constexpr std::size_t kKvAlignment = 4096;
/// `tokens` lies right before the first KV byte.
inline constexpr std::size_t kTokenBytes = kPageTokens * sizeof(std::uint32_t);
/// No header of ours comes near it; larger is corrupt.
inline constexpr std::size_t kMaxHeaderBytes = std::size_t{1} << 20;
/// File offset of the 32 digits of `sum`.
inline constexpr std::size_t kSumOffset =
    8 + std::string_view("{\"__metadata__\":{\"sum\":\"").size();
inline constexpr std::size_t kSumDigits = 32;

/// What all block files of one model folder have in common.
struct ModelKey {
  Sha256Digest fingerprint{};
  Sha256Digest spec{};
  KvLayout layout;

  /// "<fingerprint>-<spec>", the folder's name.
  std::string folder() const;
};

/// A verified header with its tokens.
struct BlockHead {
  BlockPtr block;
  std::size_t width = 0;               // tokens that KV has room for
  std::uint64_t kv_offset = 0;         // bytes from the file's start
  std::uint64_t file_bytes = 0;        // exact length
  std::vector<std::uint64_t> kv_sums;  // XXH3-64: layer 0 K, V, layer 1 K, ..
};

/// What another model's header tells: enough to order and evict its blocks.
struct ForeignHead {
  BlockId parent;
  std::uint64_t start = 0;
};

/// All bytes before the first KV byte: length, header, padding, tokens.
/// Requires: kv_sums has two sums a layer, for KV at width_for(tokens).
std::vector<std::byte> encode_block_head(
    const ModelKey& key,
    const Block& block,
    std::span<const std::uint64_t> kv_sums
);

/// The exact length of a block's file.
std::uint64_t block_file_bytes(const ModelKey& key, const Block& block);

/// How many bytes decode_block_head needs, told by the file's first 8.
/// Errors: kCorrupt when the header's length cannot be.
Result<std::size_t> needed_head_bytes(
    std::span<const std::byte, 8> length, std::uint64_t file_bytes
);

/// Verifies everything that can be without KV: sum, format, key, layout,
/// file length, tokens, and that the id is `name`.
/// Errors: kCorrupt; kUnsupported for intact files of another format or
/// model.
Result<BlockHead> decode_block_head(
    const ModelKey& key,
    const BlockId& name,
    std::span<const std::byte> head,
    std::uint64_t file_bytes
);

/// The model of a block file, as its header tells it, so that a tool can
/// verify files without a model. The layout has no windows: blocks do not
/// tell. Checks the sum and as much of the header as the layout needs;
/// decode_block_head with the key checks the rest.
/// Errors: as decode_block_head.
Result<ModelKey> key_of_head(std::span<const std::byte> head);

/// What a file of any model tells of its place; checks the sum only.
Result<ForeignHead> decode_foreign_head(std::span<const std::byte> head);

/// "<id>.safetensors".
std::string block_file_name(const BlockId& id);
/// The id in a block file's name.
/// Errors: kInvalidArgument for any other name.
Result<BlockId> parse_block_file_name(std::string_view name);

}  // namespace afterglow
