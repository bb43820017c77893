#include "server/web_origin.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cctype>

namespace afterglow {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
  }
  return result;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_scheme_char(char c) {
  return (c >= 'a' && c <= 'z') || is_digit(c) || c == '+' || c == '-' ||
         c == '.';
}

bool is_host_char(char c) {
  return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '.' ||
         c == '_';
}

bool is_address(const std::string& host) {
  boost::system::error_code ec;
  boost::asio::ip::make_address(host, ec);
  return !ec;
}

bool is_default_port(std::string_view scheme, std::string_view port) {
  return (scheme == "http" && port == "80") ||
         (scheme == "https" && port == "443");
}

}  // namespace

std::optional<Authority> parse_authority(std::string_view text) {
  Authority result;
  std::string_view rest;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return {};
    result.host = lower(text.substr(1, end - 1));
    if (result.host.find(':') == std::string::npos) return {};
    if (!is_address(result.host)) return {};
    rest = text.substr(end + 1);
  } else {
    const std::size_t colon = std::min(text.find(':'), text.size());
    result.host = lower(text.substr(0, colon));
    const std::string& host = result.host;
    if (!std::all_of(host.begin(), host.end(), is_host_char)) return {};
    rest = text.substr(colon);
  }
  if (result.host.empty()) return {};
  if (!rest.empty()) {
    if (rest.front() != ':') return {};
    rest.remove_prefix(1);
    if (rest.size() > 5 || !std::all_of(rest.begin(), rest.end(), is_digit)) {
      return {};
    }
    result.port = rest;
  }
  return result;
}

std::string WebOrigin::text() const {
  const bool v6 = authority.host.find(':') != std::string::npos;
  std::string result = scheme + "://";
  result += v6 ? "[" + authority.host + "]" : authority.host;
  if (!authority.port.empty()) result += ":" + authority.port;
  return result;
}

std::optional<WebOrigin> parse_origin(std::string_view text) {
  const std::size_t mark = text.find("://");
  if (mark == std::string_view::npos || mark == 0) return {};
  WebOrigin result;
  result.scheme = lower(text.substr(0, mark));
  if (!std::all_of(
          result.scheme.begin(), result.scheme.end(), is_scheme_char
      )) {
    return {};
  }
  auto authority = parse_authority(text.substr(mark + 3));
  if (!authority) return {};
  if (is_default_port(result.scheme, authority->port)) authority->port.clear();
  result.authority = *std::move(authority);
  return result;
}

bool is_same_origin(const WebOrigin& origin, const Authority& host) {
  Authority plain = host;
  if (is_default_port(origin.scheme, plain.port)) plain.port.clear();
  return origin.authority == plain;
}

bool is_sure_host(const std::string& host) {
  // RFC 6761, 6.3: names below localhost are this machine's, too.
  return host == "localhost" || host.ends_with(".localhost") ||
         is_address(host);
}

Result<AllowedOrigins> AllowedOrigins::make(const std::vector<std::string>& list
) {
  AllowedOrigins result;
  for (const std::string& given : list) {
    if (given == "*") {
      result.all_ = true;
      continue;
    }
    std::string_view text = given;
    if (text.ends_with('/')) text.remove_suffix(1);
    const auto origin = parse_origin(text);
    if (!origin) {
      return Error{
          Code::kInvalidArgument,
          "[serve.origins] '" + given +
              "' is no origin; --allowed-origins takes a comma-separated list "
              "such as http://localhost:3000,https://example.org, or '*'"};
    }
    result.origins_.insert(origin->text());
    result.hosts_.insert(origin->authority.host);
  }
  return result;
}

bool AllowedOrigins::contain(std::string_view origin) const {
  if (all_) return true;
  const auto parsed = parse_origin(origin);
  return parsed && origins_.contains(parsed->text());
}

bool AllowedOrigins::contain_host(const std::string& host) const {
  return all_ || hosts_.contains(host);
}

}  // namespace afterglow
