#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <memory>

namespace afterglow {

/// A client's connection as bytes: TCP, or TLS over it.
/// A read and a write may run at once; cancelling a read loses no byte.
/// Thread: everything runs on the socket's strand.
class ByteStream {
 public:
  using error_code = boost::system::error_code;
  template <class T>
  using awaitable = boost::asio::awaitable<T>;
  struct Moved {
    error_code error;
    std::size_t bytes = 0;
  };

  virtual ~ByteStream() = default;

  /// Makes the connection ready for bytes.
  virtual awaitable<error_code> open() = 0;
  virtual awaitable<Moved> read_some(boost::asio::mutable_buffer into) = 0;
  virtual awaitable<Moved> write_some(boost::asio::const_buffer from) = 0;
  /// Tells the client that nothing more is sent to it. What it still sends is
  /// on the socket, and need not make sense there.
  virtual awaitable<void> end() = 0;
  /// What lies below: to close, and to see a client go.
  virtual boost::asio::ip::tcp::socket& socket() = 0;
};

std::unique_ptr<ByteStream> plain_stream(boost::asio::ip::tcp::socket socket);

/// TLS, as a server.
std::unique_ptr<ByteStream> tls_stream(
    boost::asio::ip::tcp::socket socket,
    std::shared_ptr<boost::asio::ssl::context> context
);

/// Whether a client sent its last bytes, of either kind of stream. One of TLS
/// that leaves out its goodbye is cut short as much as one of TCP could be:
/// HTTP has its own lengths.
bool is_end_of_input(const boost::system::error_code& error);

/// Whether TLS failed to open since the client spoke plain HTTP.
bool is_plain_http(const boost::system::error_code& error);

}  // namespace afterglow
