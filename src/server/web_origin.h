#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace afterglow {

/// Whom a URL or a Host header names.
struct Authority {
  std::string host;  // lower case; an IPv6 address without its brackets
  std::string port;  // as written; empty: none

  bool operator==(const Authority&) const = default;
};

/// Reads "name", "name:8080", "[::1]:8080".
std::optional<Authority> parse_authority(std::string_view text);

/// What an Origin header says (RFC 6454, 7): who made a browser send this.
struct WebOrigin {
  std::string scheme;   // lower case
  Authority authority;  // without the scheme's own port

  bool operator==(const WebOrigin&) const = default;
  std::string text() const;
};

/// Reads "https://name:8080". Nothing for "null" and for what is no origin.
std::optional<WebOrigin> parse_origin(std::string_view text);

/// Whether a page of this origin, asking this Host, asks its own server. The
/// scheme is left out: a proxy in front may end TLS.
bool is_same_origin(const WebOrigin& origin, const Authority& host);

/// Names of this machine that no one else can give to his own: localhost, and
/// all addresses, since a page is never reached by another address than its
/// own. A name of the DNS can be turned to 127.0.0.1 by its owner, who then
/// speaks to the server with his page's rights.
bool is_sure_host(const std::string& host);

/// Pages of which origins may call: --allowed-origins.
class AllowedOrigins {
 public:
  /// Each "*" or scheme://name[:port].
  /// Errors: kInvalidArgument for another text; the message says which.
  static Result<AllowedOrigins> make(const std::vector<std::string>& list);

  bool none() const { return !all_ && origins_.empty(); }
  bool all() const { return all_; }
  bool contain(std::string_view origin) const;
  /// Whether any of them lives on this host.
  bool contain_host(const std::string& host) const;

 private:
  bool all_ = false;
  std::set<std::string> origins_;
  std::set<std::string> hosts_;
};

}  // namespace afterglow
