#include "server/http_connection.h"

#include <poll.h>
#include <spdlog/spdlog.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <utility>

namespace afterglow {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto use_result = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t kReadAhead = 64 << 10;
constexpr std::size_t kDiscardBytes = 64 << 20;
constexpr auto kDiscardTime = 2s;
/// How often a client that sends no more is asked for a sign of life.
constexpr auto kProbeEvery = 5s;
constexpr auto kForever = 24h * 365;
constexpr char kContinue[] = "HTTP/1.1 100 Continue\r\n\r\n";

ApiError http_error(unsigned status, std::string message) {
  ApiError error;
  error.status = status;
  error.type =
      status >= 500 ? "service_unavailable_error" : "invalid_request_error";
  error.message = std::move(message);
  return error;
}

ApiError parse_error(const error_code& ec, const HttpLimits& limits) {
  if (ec == http::error::header_limit) {
    return http_error(
        431,
        "the request's header is longer than " +
            std::to_string(limits.header_bytes) + " bytes"
    );
  }
  if (ec == http::error::body_limit) {
    return http_error(
        413,
        "the request's body is longer than " +
            std::to_string(limits.body_bytes) + " bytes"
    );
  }
  return http_error(400, "the request is not valid HTTP/1.1: " + ec.message());
}

/// Whether the bytes were wrong, and not the connection.
bool is_protocol_error(const error_code& ec) {
  static const auto& category =
      error_code(http::error::end_of_stream).category();
  return ec.category() == category && ec != http::error::end_of_stream &&
         ec != http::error::partial_message;
}

double elapsed_ms(steady_clock::time_point since) {
  return std::chrono::duration<double, std::milli>(steady_clock::now() - since)
      .count();
}

}  // namespace

void HttpConnections::add(const std::shared_ptr<HttpConnection>& connection) {
  const std::lock_guard lock(mutex_);
  live_.emplace(connection.get(), connection);
}

void HttpConnections::remove(HttpConnection* connection) {
  const std::lock_guard lock(mutex_);
  live_.erase(connection);
  changed_.notify_all();
}

std::size_t HttpConnections::count() const {
  const std::lock_guard lock(mutex_);
  return live_.size();
}

std::vector<std::shared_ptr<HttpConnection>> HttpConnections::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<HttpConnection>> result;
  for (const auto& [key, weak] : live_) {
    if (auto connection = weak.lock()) result.push_back(std::move(connection));
  }
  return result;
}

bool HttpConnections::wait_none(steady_clock::time_point deadline) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return live_.empty(); });
}

/// Lets an exchange wake its connection from any thread; many wakes before
/// the strand comes round are one.
struct HttpConnection::Waker : std::enable_shared_from_this<Waker> {
  Waker(std::weak_ptr<HttpConnection> connection, tcp::socket::executor_type on)
      : connection(std::move(connection)), executor(std::move(on)) {}

  void wake() {
    if (pending.exchange(true)) return;
    asio::post(executor, [self = shared_from_this()] {
      self->pending = false;
      if (const auto alive = self->connection.lock()) alive->on_wake();
    });
  }

  const std::weak_ptr<HttpConnection> connection;
  const tcp::socket::executor_type executor;
  std::atomic<bool> pending{false};
};

HttpConnection::HttpConnection(
    tcp::socket socket, std::shared_ptr<HttpConnections> shared
)
    : socket_(std::move(socket)),
      shared_(std::move(shared)),
      deadline_(socket_.get_executor()),
      signal_(socket_.get_executor()) {
  error_code ignored;
  const auto endpoint = socket_.remote_endpoint(ignored);
  client_ =
      endpoint.address().to_string() + ":" + std::to_string(endpoint.port());
}

HttpConnection::~HttpConnection() {
  shared_->remove(this);
}

void HttpConnection::start(bool refuse) {
  shared_->add(shared_from_this());
  asio::co_spawn(
      socket_.get_executor(),
      [self = shared_from_this(), refuse] { return self->run(refuse); },
      [self = shared_from_this()](std::exception_ptr failure) {
        self->exchange_.reset();
        if (!failure) return;
        try {
          std::rethrow_exception(failure);
        } catch (const std::exception& error) {
          spdlog::error("http client={} {}", self->client_, error.what());
        }
      }
  );
}

void HttpConnection::drain() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    error_code ignored;
    if (self->idle_) self->socket_.close(ignored);
  });
}

void HttpConnection::cut(const ApiError& error) {
  asio::post(socket_.get_executor(), [self = shared_from_this(), error] {
    error_code ignored;
    if (self->exchange_ != nullptr) {
      self->exchange_->fail(error);
      self->on_wake();
    } else {
      self->socket_.close(ignored);
    }
  });
}

void HttpConnection::close() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    self->leave("the server closes");
  });
}

asio::awaitable<void> HttpConnection::run(bool refuse) {
  if (refuse) {
    const ApiError error =
        http_error(503, "too many connections; try again later");
    co_await refuse_rest(error);
    co_return;
  }
  for (bool open = true; open;) {
    ReadResult read = co_await read_request();
    if (std::holds_alternative<Closed>(read)) break;
    if (const auto* error = std::get_if<ApiError>(&read)) {
      co_await refuse_rest(*error);
      break;
    }
    Incoming& incoming = std::get<Incoming>(read);
    const auto begin = steady_clock::now();
    const std::string method = incoming.request.method;
    const std::string path = printable(incoming.request.path);
    auto exchange = shared_->handler(std::move(incoming.request));
    open = co_await answer(std::move(exchange), incoming.wire);
    spdlog::log(
        method == "POST" ? spdlog::level::info : spdlog::level::debug,
        "http client={} method={} path={} status={} bytes={} ms={:.1f}{}",
        client_,
        method,
        path,
        wire_->begun() ? wire_->status() : 0,
        total_written_,
        elapsed_ms(begin),
        gone_ ? " left=true" : ""
    );
  }
  disarm_deadline();
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_both, ignored);
  socket_.close(ignored);
}

asio::awaitable<bool> HttpConnection::wait_for_bytes() {
  if (buffer_.size() > 0) co_return true;
  if (half_closed_ || shared_->draining) co_return false;
  idle_ = true;
  arm_deadline(shared_->limits.idle);
  const auto [ec, count] =
      co_await socket_.async_read_some(buffer_.prepare(4096), use_result);
  idle_ = false;
  buffer_.commit(count);
  co_return !ec;
}

asio::awaitable<HttpConnection::ReadResult> HttpConnection::read_request() {
  const HttpLimits& limits = shared_->limits;
  const bool some = co_await wait_for_bytes();
  if (!some) co_return Closed{};

  http::request_parser<http::string_body> parser;
  parser.header_limit(static_cast<std::uint32_t>(limits.header_bytes));
  parser.body_limit(limits.body_bytes);
  arm_deadline(limits.header);
  const auto [header_ec, header_bytes] =
      co_await http::async_read_header(socket_, buffer_, parser, use_result);
  if (is_protocol_error(header_ec)) co_return parse_error(header_ec, limits);
  if (header_ec) co_return Closed{};

  const std::string expect(parser.get()[http::field::expect]);
  if (!expect.empty() && !parser.is_done()) {
    if (!boost::beast::iequals(expect, "100-continue")) {
      co_return http_error(417, "the server meets no such expectation");
    }
    const bool sent = co_await write_all(kContinue);
    if (!sent) co_return Closed{};
  }
  parser.eager(true);
  while (!parser.is_done()) {
    arm_deadline(limits.body);
    const auto [ec, count] =
        co_await http::async_read_some(socket_, buffer_, parser, use_result);
    if (is_protocol_error(ec)) co_return parse_error(ec, limits);
    if (ec) co_return Closed{};
  }
  disarm_deadline();

  auto message = parser.release();
  Incoming incoming;
  incoming.request.method = std::string(message.method_string());
  const std::string_view target(
      message.target().data(), message.target().size()
  );
  incoming.request.path = decode_path(target);
  incoming.request.query = decode_query(target);
  incoming.request.authorization =
      std::string(message[http::field::authorization]);
  incoming.request.x_api_key = std::string(message["x-api-key"]);
  incoming.request.if_none_match =
      std::string(message[http::field::if_none_match]);
  incoming.request.body = std::move(message.body());
  incoming.request.client = client_;
  incoming.wire.http11 = message.version() >= 11;
  incoming.wire.keep_alive = message.keep_alive() && !shared_->draining;
  incoming.wire.head_only = message.method() == http::verb::head;
  co_return incoming;
}

asio::awaitable<bool> HttpConnection::answer(
    std::unique_ptr<Exchange> exchange, WireOptions wire
) {
  exchange_ = std::move(exchange);
  wire_.emplace(wire);
  out_.clear();
  total_written_ = 0;
  probe_due_ = false;
  watching_ = true;
  asio::co_spawn(
      socket_.get_executor(),
      watch_client(),
      asio::bind_cancellation_slot(
          stop_watching_.slot(),
          [self = shared_from_this()](std::exception_ptr) {
            self->watching_ = false;
            self->signal();
          }
      )
  );
  const auto waker =
      std::make_shared<Waker>(weak_from_this(), socket_.get_executor());
  exchange_->start([waker] { waker->wake(); });

  co_await write_response();
  exchange_.reset();
  stop_watching_.emit(asio::cancellation_type::terminal);
  while (watching_) {
    co_await wait_for_signal(kForever);
  }
  co_return !gone_ && wire_->keep_alive() && !half_closed_ &&
      !shared_->draining;
}

asio::awaitable<void> HttpConnection::write_response() {
  while (!gone_) {
    if (!out_.empty()) {
      const bool sent = co_await write_all(std::exchange(out_, {}));
      if (!sent) leave("it does not take its answer");
    } else if (wire_->done()) {
      co_return;
    } else if (probe_due_) {
      probe_due_ = false;
      const bool sent = co_await write_all(kContinue);
      if (!sent) leave("it is gone");
    } else {
      // An interim response (RFC 9110, 15.2) is all that tells a client that
      // only closed its sending side from one that left.
      const bool can_probe = half_closed_ && wire_->http11() && !wire_->begun();
      co_await wait_for_signal(can_probe ? kProbeEvery : kForever);
      if (can_probe && signal_.expiry() <= steady_clock::now()) {
        probe_due_ = !wire_->begun();
      }
    }
  }
}

asio::awaitable<bool> HttpConnection::write_all(std::string bytes) {
  in_flight_ = std::move(bytes);
  written_ = 0;
  bool sent = true;
  while (sent && written_ < in_flight_.size()) {
    arm_deadline(shared_->limits.write);
    const auto rest = asio::buffer(in_flight_) + written_;
    const auto [ec, count] =
        co_await socket_.async_write_some(rest, use_result);
    written_ += count;
    total_written_ += count;
    sent = !ec;
  }
  disarm_deadline();
  in_flight_.clear();
  written_ = 0;
  co_return sent;
}

/// Reads ahead while an answer is made, to see the client close or reset.
asio::awaitable<void> HttpConnection::watch_client() {
  while (!half_closed_ && buffer_.size() < kReadAhead) {
    const auto [ec, count] =
        co_await socket_.async_read_some(buffer_.prepare(4096), use_result);
    buffer_.commit(count);
    if (ec == asio::error::operation_aborted) co_return;
    if (ec == asio::error::eof) {
      half_closed_ = true;
    } else if (ec) {
      leave("it is gone");
      co_return;
    }
  }
  if (half_closed_ && wire_->http11() && !wire_->begun()) {
    probe_due_ = true;
    signal();
  }
  const auto [ec] =
      co_await socket_.async_wait(tcp::socket::wait_error, use_result);
  if (!ec && client_is_gone()) leave("it is gone");
}

bool HttpConnection::client_is_gone() {
  pollfd descriptor{socket_.native_handle(), 0, 0};
  return ::poll(&descriptor, 1, 0) > 0 &&
         (descriptor.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
}

asio::awaitable<void> HttpConnection::wait_for_signal(
    std::chrono::milliseconds at_most
) {
  signal_.expires_after(at_most);
  co_await signal_.async_wait(use_result);
}

void HttpConnection::signal() {
  signal_.cancel();
}

/// Answers a request that was not read to its end, and takes in what the
/// client still sends for a while: closing at once would make its system
/// throw the answer away.
asio::awaitable<void> HttpConnection::refuse_rest(const ApiError& error) {
  WireWriter wire({.keep_alive = false});
  const bool sent = co_await write_all(wire.write(error_output(error)));
  spdlog::info(
      "http client={} status={} refused=\"{}\"",
      client_,
      error.status,
      error.message
  );
  if (!sent) co_return;
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  arm_deadline(kDiscardTime);
  std::vector<char> discarded(64 << 10);
  for (std::size_t total = 0; total < kDiscardBytes;) {
    const auto [ec, count] =
        co_await socket_.async_read_some(asio::buffer(discarded), use_result);
    if (ec) break;
    total += count;
  }
}

void HttpConnection::on_wake() {
  if (exchange_ == nullptr || gone_ || wire_->done()) return;
  out_ += wire_->write(exchange_->take());
  if (wire_->streaming() && unsent() > shared_->limits.lag_bytes) {
    leave("it lags too far behind its answer");
    return;
  }
  signal();
}

std::size_t HttpConnection::unsent() const {
  return out_.size() + in_flight_.size() - written_;
}

void HttpConnection::leave(const char* why) {
  if (gone_) return;
  gone_ = true;
  if (exchange_ != nullptr && !wire_->done()) {
    spdlog::info("http client={} cut=\"{}\"", client_, why);
  }
  error_code ignored;
  socket_.close(ignored);
  signal();
}

void HttpConnection::arm_deadline(std::chrono::milliseconds timeout) {
  deadline_.expires_after(timeout);
  deadline_.async_wait([weak = weak_from_this()](error_code ec) {
    const auto self = weak.lock();
    if (ec || !self) return;
    // A timer that went off just before it was set anew does not count.
    if (self->deadline_.expiry() > steady_clock::now()) return;
    self->leave("it took too long");
  });
}

void HttpConnection::disarm_deadline() {
  deadline_.expires_at(steady_clock::time_point::max());
}

}  // namespace afterglow
