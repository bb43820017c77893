#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "server/byte_stream.h"
#include "server/client_link.h"
#include "server/exchange.h"
#include "server/http_connections.h"
#include "server/http_wire.h"
#include "server/incoming_request.h"

namespace afterglow {

/// One client's connection: answers its requests, one after the other, with
/// what their exchanges say, and watches for the client to leave meanwhile.
/// Thread: everything runs on the socket's strand; start, drain, cut and
/// close may be called from any thread.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  template <class T>
  using awaitable = boost::asio::awaitable<T>;

  HttpConnection(
      std::unique_ptr<ByteStream> stream,
      std::shared_ptr<HttpConnections> shared
  );
  ~HttpConnection();

  /// refuse: answers 503 and closes.
  void start(bool refuse);
  /// Closes the connection as soon as it has nothing to answer.
  void drain();
  /// Ends the running exchange with this error; the connection then closes.
  void cut(const ApiError& error);
  /// Closes at once.
  void close();
  /// Closes the connection if it waits for a request and was not told so
  /// before; false if not.
  bool give_way();
  /// Since when it waits for a request; the clock's end while it does not.
  std::chrono::steady_clock::time_point idle_since() const;

 private:
  awaitable<void> run(bool refuse);
  awaitable<bool> open();
  awaitable<bool> wait_for_bytes();
  awaitable<bool> serve(IncomingRequest incoming);
  awaitable<bool> answer(std::unique_ptr<Exchange> exchange, WireOptions wire);
  awaitable<void> write_response();
  awaitable<void> watch_client();
  awaitable<void> wait_for_signal(std::chrono::milliseconds at_most);

  std::unique_ptr<Exchange> make_answer(IncomingRequest& incoming);
  void wake_up();
  void on_wake();
  void log_failure(const std::exception& thrown) const;
  void leave(const char* why);
  void signal();
  bool gone() const { return link_->cut_for() != nullptr; }

  const std::shared_ptr<HttpConnections> shared_;
  const std::shared_ptr<ClientLink> link_;
  const boost::asio::ip::tcp::socket::executor_type strand_;
  boost::asio::steady_timer signal_;  // something below has changed
  boost::asio::cancellation_signal stop_watching_;

  bool idle_ = false;  // waits for a handshake or a request's first byte
  std::atomic<std::chrono::steady_clock::time_point> idle_since_{
      std::chrono::steady_clock::time_point::max()};
  bool half_closed_ = false;  // the client sends no more
  bool watching_ = false;
  bool probe_due_ = false;

  // The running exchange.
  std::unique_ptr<Exchange> exchange_;
  std::optional<WireWriter> wire_;
  std::string out_;         // to be written next
  std::string request_id_;  // that its head names
  std::string fault_;       // what is wrong with the request, for the log
};

}  // namespace afterglow
