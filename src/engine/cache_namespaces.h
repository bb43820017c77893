#pragma once

#include <string>
#include <string_view>

namespace afterglow {

/// Names for parts of the cache that never share tokens. A name tells nothing
/// of the keys it is made of to those who lack the secret.
/// Thread: safe from any thread.
class CacheNamespaces {
 public:
  /// 32 bytes that nobody else knows, for a cache that ends with the process.
  static std::string random_secret();

  explicit CacheNamespaces(std::string secret);

  /// 64 hex digits: HMAC-SHA256(secret, api_key, cache_key), each key
  /// preceded by its length as u64, so that no two pairs are alike.
  std::string name(std::string_view api_key, std::string_view cache_key) const;

 private:
  const std::string secret_;
};

}  // namespace afterglow
