#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "server/byte_budget.h"
#include "server/byte_stream.h"
#include "server/exchange.h"
#include "server/http_limits.h"
#include "server/http_wire.h"
#include "server/request_reader.h"

namespace afterglow {

class HttpConnection;

/// What connections share: gate and handler, the limits and the list of those
/// that live. Thread: safe from any thread.
class HttpConnections {
 public:
  HttpConnections(HttpGate gate, HttpHandler handler, HttpLimits limits)
      : gate(std::move(gate)),
        handler(std::move(handler)),
        limits(limits),
        bodies(limits.all_bodies_bytes) {}

  const HttpGate gate;
  const HttpHandler handler;
  const HttpLimits limits;
  ByteBudget bodies;
  std::atomic<bool> draining{false};

  void add(const std::shared_ptr<HttpConnection>& connection);
  void remove(HttpConnection* connection);
  std::size_t count() const;
  std::vector<std::shared_ptr<HttpConnection>> all() const;
  /// Closes the connection that has waited longest for a request; false when
  /// none waits.
  bool close_idlest();
  bool wait_none(std::chrono::steady_clock::time_point deadline) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::unordered_map<HttpConnection*, std::weak_ptr<HttpConnection>> live_;
};

/// One client's connection: reads requests, one after the other, and writes
/// what their exchanges say.
/// Thread: everything runs on the socket's strand; start, drain, cut and
/// close may be called from any thread.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  using tcp = boost::asio::ip::tcp;
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
  struct Waker;
  /// A request that gets an answer.
  struct Incoming {
    HttpRequest request;
    WireOptions wire;
    std::unique_ptr<Exchange> answer;  // null: the handler makes it
    bool unread = false;               // the client may still be sending it
    std::string refused;               // for the log
    std::optional<ByteBudget::Share> body;  // held until it is answered
  };
  struct Closed {};
  using ReadResult = std::variant<Closed, Incoming>;

  /// For bytes that are no request, or one that is not taken.
  static Incoming refusal(const ApiError& error);

  awaitable<void> run(bool refuse);
  awaitable<bool> open();
  awaitable<bool> serve(Incoming incoming);
  awaitable<bool> wait_for_bytes();
  awaitable<bool> read_some(std::size_t at_most);
  awaitable<ReadResult> read_request();
  awaitable<bool> read_head(RequestReader& reader);
  awaitable<bool> read_body(RequestReader& reader, ByteBudget::Share& share);
  awaitable<bool> answer(std::unique_ptr<Exchange> exchange, WireOptions wire);
  awaitable<void> write_response();
  awaitable<bool> write_all(std::string bytes);
  awaitable<void> watch_client();
  awaitable<void> wait_for_signal(std::chrono::milliseconds at_most);
  awaitable<void> take_in_rest();
  awaitable<void> say_goodbye();

  std::unique_ptr<Exchange> make_answer(Incoming& incoming);
  void wake_up();
  void on_wake();
  void log_failure(const std::exception& thrown) const;
  void leave(const char* why);
  void signal();
  void arm_deadline(std::chrono::milliseconds timeout);
  void arm_deadline(std::chrono::steady_clock::time_point when);
  void disarm_deadline();
  bool client_is_gone();
  std::size_t unsent() const;

  tcp::socket& socket() { return stream_->socket(); }
  const tcp::socket::executor_type& strand() const { return strand_; }

  std::unique_ptr<ByteStream> stream_;
  const tcp::socket::executor_type strand_;
  const std::shared_ptr<HttpConnections> shared_;
  std::string client_;
  bool over_loopback_ = false;
  boost::beast::flat_buffer buffer_;  // read, not yet parsed
  boost::asio::steady_timer deadline_;
  boost::asio::steady_timer signal_;  // something below has changed
  boost::asio::cancellation_signal stop_watching_;

  bool idle_ = false;  // waits for a handshake or a request's first byte
  std::atomic<std::chrono::steady_clock::time_point> idle_since_{
      std::chrono::steady_clock::time_point::max()};
  bool half_closed_ = false;  // the client sends no more
  bool gone_ = false;         // the client, or our patience
  bool watching_ = false;
  bool probe_due_ = false;

  // The running exchange.
  std::unique_ptr<Exchange> exchange_;
  std::optional<WireWriter> wire_;
  std::string out_;          // to be written next
  std::string in_flight_;    // being written
  std::size_t written_ = 0;  // of in_flight_
  std::size_t total_written_ = 0;
  std::string request_id_;  // that its head names
};

}  // namespace afterglow
