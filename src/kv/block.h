#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/page.h"
#include "base/result.h"
#include "base/token.h"

namespace afterglow {

/// The name of a block: a SHA-256 chain over model, numerics, namespace and
/// all tokens from the start, so equal ids mean equal KV.
struct BlockId {
  Sha256Digest bytes{};

  auto operator<=>(const BlockId&) const = default;
  /// 64 lower-case hex digits.
  std::string hex() const;
  /// Errors: kInvalidArgument unless exactly 64 lower-case hex digits.
  static Result<BlockId> parse(std::string_view text);
};

struct BlockIdHash {
  std::size_t operator()(const BlockId& id) const;
};

/// The parent of the first blocks: SHA-256("afterglow-kv-1", fingerprint,
/// spec, namespace).
BlockId root_id(
    const Sha256Digest& fingerprint,
    const Sha256Digest& spec,
    std::string_view name_space
);

/// SHA-256(parent, u64 start, u32 n, tokens as u32).
BlockId block_id(
    const BlockId& parent, std::uint64_t start, std::span<const Token> tokens
);

/// Up to kPageTokens tokens that follow their parent's, without their KV.
/// Fewer than kPageTokens make it a tail, which has no children.
struct Block {
  BlockId id;
  BlockId parent;
  std::uint64_t start = 0;  // a multiple of kPageTokens
  std::vector<Token> tokens;

  bool full() const { return tokens.size() == kPageTokens; }
};

using BlockPtr = std::shared_ptr<const Block>;

/// Makes a block, computing its id.
BlockPtr make_block(
    const BlockId& parent, std::uint64_t start, std::span<const Token> tokens
);

}  // namespace afterglow
