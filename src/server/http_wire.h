#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/exchange.h"

namespace afterglow {

/// How a response is written on its connection.
struct WireOptions {
  bool http11 = true;      // of the request
  bool keep_alive = true;  // wanted by the client and granted
  bool head_only = false;  // the request was HEAD
  HeaderList headers;      // of every answer to the request
};

/// Writes responses as HTTP/1.1 text (RFC 9112): a length for a whole body,
/// chunks for a stream, or, to an HTTP/1.0 client, a stream that ends with
/// the connection.
/// Thread: one thread at a time.
class WireWriter {
 public:
  explicit WireWriter(WireOptions options) : options_(options) {}

  /// The bytes of this output. Requires: the first output has the head; one
  /// that is not streaming is done at once.
  std::string write(const Output& output);

  /// The connection ends with this answer, whose head, if it has yet to be
  /// written, says so.
  void close_after() { options_.keep_alive = false; }

  bool begun() const { return begun_; }
  bool streaming() const { return streaming_; }
  bool done() const { return done_; }
  unsigned status() const { return status_; }
  /// Whether the connection can take another request. Known once begun.
  bool keep_alive() const { return options_.keep_alive; }
  bool http11() const { return options_.http11; }

 private:
  std::string head_text(const ResponseHead& head, std::size_t body_bytes);

  WireOptions options_;
  bool begun_ = false;
  bool streaming_ = false;
  bool chunked_ = false;
  bool done_ = false;
  unsigned status_ = 0;
};

/// "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, 5.6.7).
std::string http_date(std::chrono::system_clock::time_point time);

/// "Not Found" for 404.
std::string_view reason_phrase(unsigned status);

/// A target in absolute form, http://host/path?query, in two; of another, the
/// host is empty and the rest all (RFC 9112, 3.2).
struct Target {
  std::string_view host;
  std::string_view rest;
};
Target split_target(std::string_view target);

/// A request target's path with %XX decoded and the query cut off.
std::string decode_path(std::string_view target);

/// A name and its value in a query, both decoded.
using QueryParameter = std::pair<std::string, std::string>;

/// A request target's query, `a=b&c=d`: %XX decoded, '+' read as a space. A
/// name without '=' has the value "". Empty pieces are left out.
/// Source: WHATWG URL standard, application/x-www-form-urlencoded parsing.
std::vector<QueryParameter> decode_query(std::string_view target);

}  // namespace afterglow
