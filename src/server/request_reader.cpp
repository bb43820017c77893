#include "server/request_reader.h"

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace afterglow {
namespace {

namespace http = boost::beast::http;
using boost::beast::iequals;
using boost::system::error_code;

std::string_view view(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

ApiError http_error(unsigned status, std::string message) {
  ApiError error;
  error.status = status;
  error.type =
      status >= 500 ? "service_unavailable_error" : "invalid_request_error";
  error.message = std::move(message);
  return error;
}

RequestReader::RequestReader(const HttpLimits& limits) : limits_(limits) {
  parser_.header_limit(static_cast<std::uint32_t>(limits.header_bytes));
  // Checked by begin_body, so that the head can be read in any case.
  parser_.body_limit(boost::none);
}

RequestReader::State RequestReader::read(boost::beast::flat_buffer& buffer) {
  switch (state_) {
    case State::kHead:
      return state_ = read_head(buffer);
    case State::kBody:
      return state_ = read_body(buffer);
    case State::kDone:
    case State::kFailed:
      break;
  }
  return state_;
}

// One may come before a request (RFC 9112, 2.2). False: more bytes are needed.
bool RequestReader::skip_empty_line(boost::beast::flat_buffer& buffer) {
  const auto data = buffer.data();
  const std::string_view bytes(
      static_cast<const char*>(data.data()), data.size()
  );
  if (head_bytes_ == 0 && (bytes == "\r" || bytes.empty())) return false;
  if (head_bytes_ == 0 && bytes.starts_with("\r\n")) {
    buffer.consume(2);
    head_bytes_ = 2;
  }
  return buffer.size() > 0;
}

RequestReader::State RequestReader::read_head(boost::beast::flat_buffer& buffer
) {
  if (!skip_empty_line(buffer)) return State::kHead;
  error_code ec;
  const std::size_t used = parser_.put(buffer.data(), ec);
  buffer.consume(used);
  head_bytes_ += used;
  const bool more = ec == http::error::need_more;
  if (ec && !more) return fail(ec);
  // The parser's own limit is on what it sees at once, not on the sum.
  if (head_bytes_ + (more ? buffer.size() : 0) > limits_.header_bytes) {
    return fail(http::error::header_limit);
  }
  if (more) return State::kHead;

  const auto& message = parser_.get();
  const Target target = split_target(view(message.target()));
  request_.method = view(message.method_string());
  request_.path = decode_path(target.rest);
  request_.query = decode_query(target.rest);
  request_.host =
      target.host.empty() ? view(message[http::field::host]) : target.host;
  request_.origin = view(message[http::field::origin]);
  request_.authorization = view(message[http::field::authorization]);
  request_.x_api_key = view(message["x-api-key"]);
  request_.if_none_match = view(message[http::field::if_none_match]);

  const auto hosts = message.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && message.version() >= 11)) {
    return fail(400, "a request must have one Host header");
  }
  // Two that agree are no better: what stands before this server may count
  // them differently.
  const std::string_view length = view(message[http::field::content_length]);
  if (message.count(http::field::content_length) > 1 ||
      length.find(',') != std::string_view::npos) {
    return fail(400, "a request must have one length");
  }
  // Anything else would leave a body of unknown length on the connection.
  const auto encoding = message.find(http::field::transfer_encoding);
  if (encoding != message.end() &&
      (!iequals(encoding->value(), "chunked") || message.version() < 11 ||
       message.count(http::field::transfer_encoding) > 1)) {
    return fail(400, "the only transfer encoding that is read is 'chunked'");
  }
  if (!parser_.is_done()) {
    expects_continue_ = iequals(message[http::field::expect], "100-continue") &&
                        message.version() >= 11;
    return State::kBody;
  }
  return State::kDone;
}

RequestReader::State RequestReader::begin_body() {
  body_begun_ = true;
  const auto& message = parser_.get();
  if (message.count(http::field::expect) > 0 && message.version() >= 11 &&
      !expects_continue_) {
    return fail(417, "the server meets no such expectation");
  }
  const std::string_view coding = view(message[http::field::content_encoding]);
  if (!coding.empty() && !iequals(coding, "identity")) {
    return fail(
        415,
        "a body must come as it is, not in the encoding '" +
            std::string(coding) + "'"
    );
  }
  const auto length = parser_.content_length();
  if (length && *length > limits_.body_bytes) {
    return fail(http::error::body_limit);
  }
  parser_.body_limit(limits_.body_bytes);
  parser_.eager(true);
  return State::kBody;
}

RequestReader::State RequestReader::read_body(boost::beast::flat_buffer& buffer
) {
  if (!body_begun_ && begin_body() == State::kFailed) return State::kFailed;
  error_code ec;
  while (buffer.size() > 0) {
    const std::size_t used = parser_.put(buffer.data(), ec);
    buffer.consume(used);
    if (ec && ec != http::error::need_more) return fail(ec);
    if (parser_.is_done()) {
      request_.body = std::move(parser_.get().body());
      return State::kDone;
    }
    if (ec == http::error::need_more || used == 0) break;
  }
  // Only a chunk's framing and trailers can wait here; the parser would let
  // them grow for ever.
  if (buffer.size() > limits_.header_bytes) {
    return fail(http::error::header_limit);
  }
  return State::kBody;
}

WireOptions RequestReader::wire() const {
  const auto& message = parser_.get();
  WireOptions options;
  options.http11 = message.version() >= 11;
  options.keep_alive = message.keep_alive();
  options.head_only = message.method() == http::verb::head;
  return options;
}

RequestReader::State RequestReader::refuse(ApiError error) {
  error_ = std::move(error);
  return state_ = State::kFailed;
}

RequestReader::State RequestReader::fail(unsigned status, std::string message) {
  return refuse(http_error(status, std::move(message)));
}

RequestReader::State RequestReader::fail(const error_code& ec) {
  if (ec == http::error::header_limit) {
    return fail(
        431,
        "the request's header is longer than " +
            std::to_string(limits_.header_bytes) + " bytes"
    );
  }
  if (ec == http::error::body_limit) {
    return fail(
        413,
        "the request's body is longer than " +
            std::to_string(limits_.body_bytes) + " bytes"
    );
  }
  return fail(400, "the request is not valid HTTP/1.1: " + ec.message());
}

}  // namespace afterglow
