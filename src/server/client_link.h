#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "server/byte_stream.h"
#include "server/http_limits.h"

namespace afterglow {

/// A client's bytes in both directions, and how long it is waited for: who is
/// slower than the limits say is cut. Held by a shared_ptr.
/// Thread: everything runs on the socket's strand.
class ClientLink : public std::enable_shared_from_this<ClientLink> {
 public:
  using tcp = boost::asio::ip::tcp;
  using error_code = boost::system::error_code;
  using time_point = std::chrono::steady_clock::time_point;
  template <class T>
  using awaitable = boost::asio::awaitable<T>;

  /// `limits` must outlive all calls.
  ClientLink(std::unique_ptr<ByteStream> stream, const HttpLimits& limits);

  const std::string& name() const { return name_; }  // address and port
  bool over_loopback() const { return over_loopback_; }
  tcp::socket& socket() { return stream_->socket(); }

  /// Makes the connection ready for bytes.
  awaitable<error_code> open();
  /// Goes on without TLS, which did not open.
  void go_on_plain();
  /// Says that nothing more comes, and closes.
  awaitable<void> say_goodbye();
  void close();
  /// Closes for a reason: a text that lasts. The first one counts.
  void cut(const char* why);
  /// Null until cut.
  const char* cut_for() const { return cut_for_; }

  /// What was read and is not parsed yet.
  boost::beast::flat_buffer& buffer() { return buffer_; }
  /// Adds to the buffer; false when nothing more comes. Cut at `until`.
  awaitable<bool> read_some(std::size_t at_most, time_point until);
  /// The same without a deadline; may be cancelled, and run beside a write.
  awaitable<error_code> read_ahead(std::size_t at_most);
  /// Takes in what the client still sends of a request that was answered
  /// before its end: closing at once would make its system throw the answer
  /// away.
  awaitable<void> take_in_rest();

  /// False when the connection ended first. One that takes the bytes slower
  /// than the least rate is cut.
  awaitable<bool> write_all(std::string bytes);
  /// Bytes of write_all that are not sent yet.
  std::size_t unsent() const { return in_flight_.size() - sent_; }
  std::size_t written() const { return written_; }  // since the start

  /// When to give up on a transfer: when nothing moves for the grace, or when
  /// so many bytes since the beginning are too few.
  time_point patience(
      time_point begin, std::chrono::milliseconds grace, std::size_t bytes
  ) const;

 private:
  void arm_deadline(time_point when);
  void disarm_deadline();

  const HttpLimits& limits_;
  std::unique_ptr<ByteStream> stream_;
  std::string name_;
  bool over_loopback_ = false;
  const char* cut_for_ = nullptr;
  boost::beast::flat_buffer buffer_;
  boost::asio::steady_timer deadline_;
  std::string in_flight_;  // being written
  std::size_t sent_ = 0;   // of in_flight_
  std::size_t written_ = 0;
};

}  // namespace afterglow
