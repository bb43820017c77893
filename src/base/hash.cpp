#include "base/hash.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <xxhash.h>

#include <bit>
#include <cstring>

#include "base/check.h"

namespace afterglow {

static_assert(std::endian::native == std::endian::little);

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  CHECK(state_->context != nullptr);
  CHECK(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;

Sha256& Sha256::bytes(std::span<const std::byte> data) {
  CHECK(EVP_DigestUpdate(state_->context, data.data(), data.size()) == 1);
  return *this;
}

Sha256& Sha256::u32(std::uint32_t value) {
  return bytes(std::as_bytes(std::span(&value, 1)));
}

Sha256& Sha256::u64(std::uint64_t value) {
  return bytes(std::as_bytes(std::span(&value, 1)));
}

Sha256& Sha256::text(std::string_view value) {
  u64(value.size());
  return bytes(std::as_bytes(std::span(value)));
}

Sha256& Sha256::digest(const Sha256Digest& value) {
  return bytes(std::as_bytes(std::span(value)));
}

Sha256Digest Sha256::finish() {
  Sha256Digest result;
  unsigned length = 0;
  CHECK(EVP_DigestFinal_ex(state_->context, result.data(), &length) == 1);
  CHECK(length == result.size());
  return result;
}

Sha256Digest hmac_sha256(std::string_view key, std::string_view message) {
  Sha256Digest result;
  unsigned length = 0;
  const unsigned char* made = HMAC(
      EVP_sha256(),
      key.data(),
      static_cast<int>(key.size()),
      reinterpret_cast<const unsigned char*>(message.data()),
      message.size(),
      result.data(),
      &length
  );
  CHECK(made != nullptr && length == result.size());
  return result;
}

std::string hex(std::span<const std::uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string result;
  result.reserve(2 * bytes.size());
  for (std::uint8_t byte : bytes) {
    result += kDigits[byte >> 4];
    result += kDigits[byte & 15];
  }
  return result;
}

std::uint64_t xxh3_64(std::span<const std::byte> data) {
  return XXH3_64bits(data.data(), data.size());
}

std::array<std::uint8_t, 16> xxh3_128(std::span<const std::byte> data) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(data.data(), data.size()));
  std::array<std::uint8_t, 16> result;
  std::memcpy(result.data(), canonical.digest, result.size());
  return result;
}

}  // namespace afterglow
