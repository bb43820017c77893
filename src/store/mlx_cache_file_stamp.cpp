#include "store/mlx_cache_file_stamp.h"

#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>

#include "base/check.h"
#include "kv/block.h"

namespace afterglow {

namespace {

constexpr std::string_view kSum = "afterglow.sum";
constexpr std::string_view kSums = "afterglow.sums";
constexpr std::string_view kFingerprint = "afterglow.fingerprint";
constexpr std::string_view kSpec = "afterglow.spec";
constexpr std::string_view kTokens = "afterglow.tokens";
constexpr std::string_view kBegin = "{\"__metadata__\":{\"0.afterglow.sum\":\"";
constexpr std::size_t kDigits = 32;

Error wrong(std::string_view key) {
  return {Code::kCorrupt, std::string(key) + ": not in its form"};
}

/// Splits at single spaces; nothing for any other form.
template <class Number>
std::optional<std::vector<Number>> parse_numbers(
    std::string_view text, int base
) {
  std::vector<Number> numbers;
  const char* at = text.data();
  const char* end = at + text.size();
  for (;;) {
    Number number{};
    auto [next, error] = std::from_chars(at, end, number, base);
    bool unknown = static_cast<std::int64_t>(number) == kUnknownToken;
    if (error != std::errc() || (*at == '-' && !unknown)) {
      return std::nullopt;
    }
    numbers.push_back(number);
    if (next == end) {
      return numbers;
    }
    if (*next != ' ' || next + 1 == end) {
      return std::nullopt;
    }
    at = next + 1;
  }
}

std::string hex64(std::uint64_t value) {
  std::array<std::uint8_t, 8> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(value >> (56 - 8 * i));
  }
  return hex(bytes);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> stamp_metadata(
    const MlxCacheStamp& stamp, std::span<const std::uint64_t> sums
) {
  std::string sum_text;
  for (std::uint64_t sum : sums) {
    sum_text += (sum_text.empty() ? "" : " ") + hex64(sum);
  }
  std::string token_text;
  for (Token token : stamp.tokens) {
    token_text += (token_text.empty() ? "" : " ") + std::to_string(token);
  }
  return {
      {std::string(kSum), std::string(kDigits, '0')},
      {std::string(kSums), std::move(sum_text)},
      {std::string(kFingerprint), hex(stamp.fingerprint)},
      {std::string(kSpec), hex(stamp.spec)},
      {std::string(kTokens), std::move(token_text)}};
}

bool has_stamp(const MlxCacheHeader& header) {
  for (const auto& [key, value] : header.metadata) {
    if (key.starts_with(kMlxStampPrefix)) {
      return true;
    }
  }
  return false;
}

Result<StampText> parse_stamp(const MlxCacheHeader& header) {
  for (std::string_view key : {kSum, kSums, kFingerprint, kSpec, kTokens}) {
    if (header.find(key) == nullptr) {
      return Error{Code::kCorrupt, std::string(key) + ": missing"};
    }
  }
  StampText text;
  text.sum = *header.find(kSum);
  auto fingerprint = BlockId::parse(*header.find(kFingerprint));
  auto spec = BlockId::parse(*header.find(kSpec));
  auto sums = parse_numbers<std::uint64_t>(*header.find(kSums), 16);
  auto tokens = parse_numbers<Token>(*header.find(kTokens), 10);
  if (!fingerprint || !spec) {
    return wrong(fingerprint ? kSpec : kFingerprint);
  }
  if (!sums || sums->size() != 3 * header.layers.size()) {
    return wrong(kSums);
  }
  if (!tokens) {
    return wrong(kTokens);
  }
  text.stamp = {fingerprint->bytes, spec->bytes, std::move(*tokens)};
  text.sums = std::move(*sums);
  return text;
}

std::string stamp_sum(std::string_view text) {
  CHECK(text.size() >= kBegin.size() + kDigits);
  std::vector<std::byte> bytes(8 + text.size());
  std::uint64_t length = text.size();
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<std::byte>(length >> (8 * i));
  }
  std::memcpy(bytes.data() + 8, text.data(), text.size());
  std::memset(bytes.data() + 8 + kBegin.size(), '0', kDigits);
  return hex(xxh3_128(bytes));
}

void set_stamp_sum(std::string& text, std::string_view sum) {
  CHECK(sum.size() == kDigits && !find_stamp_sum(text).empty());
  text.replace(kBegin.size(), kDigits, sum);
}

std::string_view find_stamp_sum(std::string_view text) {
  if (text.size() < kBegin.size() + kDigits ||
      text.substr(0, kBegin.size()) != kBegin) {
    return {};
  }
  return text.substr(kBegin.size(), kDigits);
}

}  // namespace afterglow
