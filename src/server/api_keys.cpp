#include "server/api_keys.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>

namespace afterglow {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

Sha256Digest digest_of(std::string_view key) {
  return Sha256().bytes(std::as_bytes(std::span(key))).finish();
}

bool fits_a_header(std::string_view key) {
  return std::all_of(key.begin(), key.end(), [](char c) {
    return c > 0x20 && c < 0x7F;
  });
}

std::string_view trimmed(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(kBlank) - begin + 1);
}

Error unreadable(const std::string& path, int error) {
  return {
      Code::kIo,
      "[serve.keys] cannot read the keys in " + path + ": " +
          std::strerror(error)};
}

}  // namespace

Result<ApiKeys> ApiKeys::make(const std::vector<std::string>& keys) {
  ApiKeys result;
  for (const std::string& key : keys) {
    if (key.empty() || !fits_a_header(key)) {
      return Error{
          Code::kInvalidArgument,
          "[serve.keys] an API key must be one word of printable ASCII, as "
          "clients send it in a header; one of those given is not"};
    }
    result.digests_.push_back(digest_of(key));
  }
  return result;
}

bool ApiKeys::contain(std::string_view key) const {
  const Sha256Digest shown = digest_of(key);
  int found = 0;
  for (const Sha256Digest& digest : digests_) {
    found |= CRYPTO_memcmp(digest.data(), shown.data(), shown.size()) == 0;
  }
  return found != 0;
}

Result<std::vector<std::string>> read_api_key_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return unreadable(path, errno);
  std::vector<std::string> keys;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string_view key = trimmed(line);
    if (key.empty() || key.front() == '#') continue;
    if (!fits_a_header(key)) {
      return Error{
          Code::kInvalidArgument,
          "[serve.keys] " + path + ":" + std::to_string(number) +
              ": an API key must be one word of printable ASCII, as clients "
              "send it in a header; comments are lines of their own"};
    }
    keys.emplace_back(key);
  }
  // A directory opens, and fails when it is read.
  if (file.bad()) return unreadable(path, errno);
  if (keys.empty()) {
    return Error{
        Code::kInvalidArgument,
        "[serve.keys] there is no key in " + path + "; it takes one a line"};
  }
  return keys;
}

std::string api_key_of(const HttpRequest& request) {
  constexpr std::string_view kBearer = "Bearer ";
  std::string_view value = request.authorization;
  if (value.empty()) return request.x_api_key;
  if (boost::beast::iequals(value.substr(0, kBearer.size()), kBearer)) {
    value.remove_prefix(kBearer.size());
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  }
  return std::string(value);
}

}  // namespace afterglow
