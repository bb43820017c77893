#include "kv/block.h"

#include <cstring>

#include "base/check.h"

namespace afterglow {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  if (c >= 'a' && c <= 'f') {
    return c - 'a' + 10;
  }
  return -1;
}

}  // namespace

std::string BlockId::hex() const {
  return afterglow::hex(bytes);
}

Result<BlockId> BlockId::parse(std::string_view text) {
  BlockId id;
  if (text.size() != 2 * id.bytes.size()) {
    return Error{
        Code::kInvalidArgument,
        "[kv.block_id] a block id has 64 lower-case hex digits, not " +
            std::to_string(text.size()) + " characters"};
  }
  for (std::size_t i = 0; i < id.bytes.size(); ++i) {
    int high = hex_value(text[2 * i]);
    int low = hex_value(text[2 * i + 1]);
    if (high < 0 || low < 0) {
      return Error{
          Code::kInvalidArgument,
          "[kv.block_id] not a lower-case hex digit in characters " +
              std::to_string(2 * i) + " and " + std::to_string(2 * i + 1)};
    }
    id.bytes[i] = static_cast<std::uint8_t>(16 * high + low);
  }
  return id;
}

std::size_t BlockIdHash::operator()(const BlockId& id) const {
  std::size_t value;
  std::memcpy(&value, id.bytes.data(), sizeof value);
  return value;
}

BlockId root_id(
    const Sha256Digest& fingerprint,
    const Sha256Digest& spec,
    std::string_view name_space
) {
  return {Sha256()
              .text("afterglow-kv-1")
              .digest(fingerprint)
              .digest(spec)
              .text(name_space)
              .finish()};
}

BlockId block_id(
    const BlockId& parent, std::uint64_t start, std::span<const Token> tokens
) {
  return {Sha256()
              .digest(parent.bytes)
              .u64(start)
              .u32(static_cast<std::uint32_t>(tokens.size()))
              .bytes(std::as_bytes(tokens))
              .finish()};
}

BlockPtr make_block(
    const BlockId& parent, std::uint64_t start, std::span<const Token> tokens
) {
  CHECK(
      !tokens.empty() && tokens.size() <= kPageTokens &&
      start % kPageTokens == 0
  );
  return std::make_shared<const Block>(Block{
      block_id(parent, start, tokens),
      parent,
      start,
      {tokens.begin(), tokens.end()}});
}

}  // namespace afterglow
