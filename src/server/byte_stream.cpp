#include "server/byte_stream.h"

#include <openssl/err.h>
#include <openssl/sslerr.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace afterglow {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto use_result = asio::as_tuple(asio::use_awaitable);

class PlainStream : public ByteStream {
 public:
  explicit PlainStream(tcp::socket socket) : socket_(std::move(socket)) {}

  awaitable<error_code> open() override { co_return error_code(); }
  awaitable<Moved> read_some(asio::mutable_buffer into) override {
    const auto [error, bytes] =
        co_await socket_.async_read_some(into, use_result);
    co_return Moved{error, bytes};
  }
  awaitable<Moved> write_some(asio::const_buffer from) override {
    const auto [error, bytes] =
        co_await socket_.async_write_some(from, use_result);
    co_return Moved{error, bytes};
  }
  awaitable<void> end() override {
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    co_return;
  }
  tcp::socket& socket() override { return socket_; }

 private:
  tcp::socket socket_;
};

class TlsStream : public ByteStream {
 public:
  TlsStream(tcp::socket socket, std::shared_ptr<ssl::context> context)
      : context_(std::move(context)), stream_(std::move(socket), *context_) {}

  awaitable<error_code> open() override {
    const auto [error] =
        co_await stream_.async_handshake(ssl::stream_base::server, use_result);
    co_return error;
  }
  awaitable<Moved> read_some(asio::mutable_buffer into) override {
    const auto [error, bytes] =
        co_await stream_.async_read_some(into, use_result);
    co_return Moved{error, bytes};
  }
  awaitable<Moved> write_some(asio::const_buffer from) override {
    const auto [error, bytes] =
        co_await stream_.async_write_some(from, use_result);
    co_return Moved{error, bytes};
  }
  awaitable<void> end() override {
    // Waits for the client's goodbye, too; fails when it goes on sending.
    co_await stream_.async_shutdown(use_result);
    error_code ignored;
    socket().shutdown(tcp::socket::shutdown_send, ignored);
  }
  tcp::socket& socket() override { return stream_.next_layer(); }

 private:
  const std::shared_ptr<ssl::context> context_;
  ssl::stream<tcp::socket> stream_;
};

}  // namespace

std::unique_ptr<ByteStream> plain_stream(tcp::socket socket) {
  return std::make_unique<PlainStream>(std::move(socket));
}

std::unique_ptr<ByteStream> tls_stream(
    tcp::socket socket, std::shared_ptr<ssl::context> context
) {
  return std::make_unique<TlsStream>(std::move(socket), std::move(context));
}

bool is_end_of_input(const error_code& error) {
  return error == asio::error::eof || error == ssl::error::stream_truncated;
}

bool is_plain_http(const error_code& error) {
  return error.category() == asio::error::get_ssl_category() &&
         ERR_GET_REASON(static_cast<unsigned long>(error.value())) ==
             SSL_R_HTTP_REQUEST;
}

}  // namespace afterglow
