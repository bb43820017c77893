#pragma once

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "server/api_error.h"
#include "server/exchange.h"
#include "server/http_limits.h"
#include "server/http_wire.h"

namespace afterglow {

/// Reads one request (RFC 9112) from bytes as they come; knows no socket and
/// no clock. What requests it takes does not depend on how the bytes are cut;
/// a fault in a head that has no end may be seen sooner or later.
/// Memory: a head and a chunk's framing take at most limits.header_bytes, a
/// body at most limits.body_bytes.
class RequestReader {
 public:
  enum class State {
    kHead,    // needs more bytes of the head
    kBody,    // has the head, and needs more bytes of the body
    kDone,    // has all
    kFailed,  // the bytes are no request that is served; see error()
  };

  /// `limits` must outlive the reader.
  explicit RequestReader(const HttpLimits& limits);

  /// Takes what it can use from the buffer's front. Stops behind the head
  /// once, so that the caller can decide by it whether to take the body.
  State read(boost::beast::flat_buffer& buffer);
  State state() const { return state_; }
  /// Refuses what comes, for a reason of the caller's: fails from now on.
  State refuse(ApiError error);

  /// All but the body and what only the connection knows; with kDone the body
  /// too. Requires: the head was read.
  HttpRequest& request() { return request_; }
  WireOptions wire() const;
  /// Whether the client waits for "100 Continue" before it sends the body.
  bool expects_continue() const { return expects_continue_; }

  const ApiError& error() const { return error_; }  // with kFailed

 private:
  using Parser =
      boost::beast::http::request_parser<boost::beast::http::string_body>;

  bool skip_empty_line(boost::beast::flat_buffer& buffer);
  State read_head(boost::beast::flat_buffer& buffer);
  State begin_body();
  State read_body(boost::beast::flat_buffer& buffer);
  State fail(unsigned status, std::string message);
  State fail(const boost::system::error_code& ec);

  const HttpLimits& limits_;
  Parser parser_;
  State state_ = State::kHead;
  std::size_t head_bytes_ = 0;  // parsed
  bool body_begun_ = false;
  bool expects_continue_ = false;
  HttpRequest request_;
  ApiError error_;
};

/// An error of the transport: its status, the type that goes with it.
ApiError http_error(unsigned status, std::string message);

}  // namespace afterglow
