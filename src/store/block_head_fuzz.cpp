// Any bytes as the head of a block file: refused, or exactly what
// encode_block_head writes for what was read.

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "store/block_format.h"

namespace afterglow {
namespace {

using Bytes = std::vector<std::byte>;

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

/// The head with a length that fits and its sum made right: without that
/// hardly any input would get past the sum.
void repair(Bytes& head) {
  std::uint64_t length;
  std::memcpy(&length, head.data(), sizeof length);
  std::size_t room = head.size() - 8;
  if (length > room) {
    length = room > kTokenBytes ? room - kTokenBytes : room;
    std::memcpy(head.data(), &length, sizeof length);
  }
  std::size_t end = 8 + static_cast<std::size_t>(length);
  if (end < kSumOffset + kSumDigits) {
    return;
  }
  std::memset(head.data() + kSumOffset, '0', kSumDigits);
  std::string sum = hex(xxh3_128(std::span(head).first(end)));
  std::memcpy(head.data() + kSumOffset, sum.data(), kSumDigits);
}

/// The decimal after "n":" in the head, at most kPageTokens.
std::size_t told_tokens(std::span<const std::byte> head) {
  std::string_view text(
      reinterpret_cast<const char*>(head.data()), head.size()
  );
  constexpr std::string_view kLabel = "\"n\":\"";
  std::size_t at = text.find(kLabel);
  std::size_t n = 0;
  if (at != text.npos) {
    at += kLabel.size();
    std::from_chars(text.data() + at, text.data() + text.size(), n);
  }
  return std::min(n, kPageTokens);
}

void check(std::span<const std::byte> head) {
  auto foreign = decode_foreign_head(head);
  auto key = key_of_head(head);
  if (!key) {
    return;
  }
  require(foreign.ok() || foreign.error().code == Code::kCorrupt);
  std::uint64_t length;
  std::memcpy(&length, head.data(), sizeof length);
  std::size_t data = 8 + static_cast<std::size_t>(length);
  std::size_t n = told_tokens(head);
  if (!foreign || n == 0 || head.size() < data + kTokenBytes) {
    (void)decode_block_head(*key, BlockId{}, head, head.size());
    return;
  }
  // The name that the content has, and the length that the layout says.
  std::array<std::uint32_t, kPageTokens> words;
  std::memcpy(words.data(), head.data() + data, kTokenBytes);
  std::vector<Token> tokens(words.begin(), words.begin() + n);
  bool is_block = foreign->start % kPageTokens == 0;
  for (Token token : tokens) {
    is_block = is_block && token >= 0;
  }
  if (!is_block) {
    // Nothing that a name could stand for.
    require(!decode_block_head(*key, BlockId{}, head, head.size()));
    return;
  }
  BlockPtr block = make_block(foreign->parent, foreign->start, tokens);
  std::uint64_t bytes =
      data + kTokenBytes + key->layout.block_bytes(KvLayout::width_for(n));
  auto decoded = decode_block_head(*key, block->id, head, bytes);
  if (!decoded) {
    return;
  }
  Bytes again = encode_block_head(*key, *decoded->block, decoded->kv_sums);
  require(again.size() <= head.size());
  require(std::memcmp(again.data(), head.data(), again.size()) == 0);
  require(decoded->file_bytes == bytes);
  require(block_file_bytes(*key, *decoded->block) == bytes);
  // Another name or another length is never taken.
  require(!decode_block_head(*key, block->parent, head, bytes));
  require(!decode_block_head(*key, block->id, head, bytes + 1));
}

}  // namespace
}  // namespace afterglow

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) {
  using namespace afterglow;
  auto bytes = std::as_bytes(std::span(data, n));
  Bytes head(bytes.begin(), bytes.end());
  check(head);
  if (n >= 8) {
    (void)needed_head_bytes(std::span(head).first<8>(), n);
    repair(head);
    check(head);
  }
  return 0;
}
