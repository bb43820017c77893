#include "engine/cache_namespaces.h"

#include <cstdint>
#include <random>
#include <utility>

#include "base/hash.h"

namespace afterglow {
namespace {

void append(std::string& message, std::string_view key) {
  for (int shift = 0; shift < 64; shift += 8) {
    message += static_cast<char>(std::uint64_t{key.size()} >> shift);
  }
  message += key;
}

}  // namespace

std::string CacheNamespaces::random_secret() {
  std::random_device random;  // the system's
  std::string secret;
  for (int i = 0; i < 32; ++i) {
    secret += static_cast<char>(random());
  }
  return secret;
}

CacheNamespaces::CacheNamespaces(std::string secret)
    : secret_(std::move(secret)) {}

std::string CacheNamespaces::name(
    std::string_view api_key, std::string_view cache_key
) const {
  std::string message;
  append(message, api_key);
  append(message, cache_key);
  return hex(hmac_sha256(secret_, message));
}

}  // namespace afterglow
