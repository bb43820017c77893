#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "server/exchange.h"

namespace afterglow {

/// The keys that open the server. Only their digests are kept, so that no log
/// and no core file's careless reader finds them here.
/// Thread: safe from any thread once made.
class ApiKeys {
 public:
  /// Errors: kInvalidArgument for a key that is empty or that no header can
  /// carry: other than printable ASCII, or with a space. The key is not told.
  static Result<ApiKeys> make(const std::vector<std::string>& keys);

  /// No key: the server is open.
  bool empty() const { return digests_.empty(); }
  /// In time that depends on the number of keys and the length of `key`, not
  /// on what they hold: all digests are compared, each to its end.
  bool contain(std::string_view key) const;

 private:
  std::vector<Sha256Digest> digests_;
};

/// Reads one key a line; blank lines and those that begin with '#' are
/// skipped, as are spaces around a key.
/// Errors: kIo when it cannot be read, kInvalidArgument when it holds no key.
Result<std::vector<std::string>> read_api_key_file(const std::string& path);

/// The key a client shows: of `Authorization: Bearer KEY`, or the whole value
/// of another scheme, else of `x-api-key`. "": none. The same one opens the
/// server and tells namespaces apart.
std::string api_key_of(const HttpRequest& request);

}  // namespace afterglow
