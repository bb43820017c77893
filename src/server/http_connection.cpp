#include "server/http_connection.h"

#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "server/ip_address.h"
#include "server/log_value.h"

namespace afterglow {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto use_result = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t kReadAhead = 64 << 10;
constexpr std::size_t kHeadPiece = 4 << 10;
constexpr std::size_t kBodyPiece = 64 << 10;
constexpr std::size_t kDiscardBytes = 64 << 20;
constexpr auto kDiscardTime = 2s;
constexpr auto kGoodbyeTime = 2s;
/// How often a client that sends no more is asked for a sign of life.
constexpr auto kProbeEvery = 5s;
constexpr auto kForever = 24h * 365;
constexpr auto kNever = steady_clock::time_point::max();
constexpr char kContinue[] = "HTTP/1.1 100 Continue\r\n\r\n";

/// When to give up on a transfer: when nothing moves for the grace, or when so
/// many bytes since the beginning are too few.
steady_clock::time_point patience(
    steady_clock::time_point begin,
    std::chrono::milliseconds grace,
    std::size_t bytes,
    std::size_t least_rate
) {
  const std::chrono::milliseconds earned(bytes * 1000 / least_rate);
  return std::min(steady_clock::now(), begin + earned) + grace;
}

/// The name that the answer has in the log; "" for none.
std::string request_id_of(const ResponseHead& head) {
  for (const auto& [name, value] : head.headers) {
    if (name == "X-Request-Id") return value;
  }
  return {};
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

bool HttpConnections::close_idlest() {
  std::shared_ptr<HttpConnection> idlest;
  for (auto& connection : all()) {
    if (idlest == nullptr || connection->idle_since() < idlest->idle_since()) {
      idlest = std::move(connection);
    }
  }
  return idlest != nullptr && idlest->give_way();
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
      if (const auto alive = self->connection.lock()) alive->wake_up();
    });
  }

  const std::weak_ptr<HttpConnection> connection;
  const tcp::socket::executor_type executor;
  std::atomic<bool> pending{false};
};

HttpConnection::HttpConnection(
    std::unique_ptr<ByteStream> stream, std::shared_ptr<HttpConnections> shared
)
    : stream_(std::move(stream)),
      strand_(socket().get_executor()),
      shared_(std::move(shared)),
      deadline_(strand_),
      signal_(strand_) {
  error_code ignored;
  const auto endpoint = socket().remote_endpoint(ignored);
  const auto local = socket().local_endpoint(ignored);
  over_loopback_ = unmapped(local.address()).is_loopback();
  client_ = unmapped(endpoint.address()).to_string() + ":" +
            std::to_string(endpoint.port());
}

HttpConnection::~HttpConnection() {
  shared_->remove(this);
}

void HttpConnection::start(bool refuse) {
  shared_->add(shared_from_this());
  asio::co_spawn(
      strand_,
      [self = shared_from_this(), refuse] { return self->run(refuse); },
      [self = shared_from_this()](std::exception_ptr failure) {
        self->exchange_.reset();
        if (!failure) return;
        self->leave("it failed");  // ends its watcher, too
        try {
          std::rethrow_exception(failure);
        } catch (const std::exception& error) {
          self->log_failure(error);
        }
      }
  );
}

void HttpConnection::drain() {
  asio::post(strand_, [self = shared_from_this()] {
    error_code ignored;
    if (self->idle_) self->socket().close(ignored);
  });
}

bool HttpConnection::give_way() {
  if (idle_since_.exchange(kNever) == kNever) return false;
  drain();
  return true;
}

steady_clock::time_point HttpConnection::idle_since() const {
  return idle_since_;
}

void HttpConnection::cut(const ApiError& error) {
  asio::post(strand_, [self = shared_from_this(), error] {
    error_code ignored;
    if (self->exchange_ != nullptr) {
      self->exchange_->fail(error);
      self->wake_up();
    } else {
      self->socket().close(ignored);
    }
  });
}

void HttpConnection::close() {
  asio::post(strand_, [self = shared_from_this()] {
    self->leave("the server closes");
  });
}

asio::awaitable<void> HttpConnection::run(bool refuse) {
  const bool opened = co_await open();
  if (!opened) co_return;
  if (refuse) {
    Incoming incoming =
        refusal(http_error(503, "too many connections; try again later"));
    co_await serve(std::move(incoming));
    co_return;
  }
  for (bool open = true; open;) {
    ReadResult read = co_await read_request();
    if (std::holds_alternative<Closed>(read)) break;
    open = co_await serve(std::get<Incoming>(std::move(read)));
  }
  co_await say_goodbye();
}

asio::awaitable<bool> HttpConnection::open() {
  if (shared_->draining) co_return false;
  idle_ = true;
  arm_deadline(shared_->limits.handshake);
  const error_code error = co_await stream_->open();
  disarm_deadline();
  idle_ = false;
  if (!error) co_return true;
  spdlog::info("http client={} tls={}", client_, log_value(error.message()));
  if (gone_ || !is_plain_http(error)) co_return false;
  stream_ = plain_stream(std::move(socket()));
  co_await serve(refusal(
      http_error(400, "this server speaks HTTP over TLS; ask it by https://")
  ));
  co_return false;
}

asio::awaitable<void> HttpConnection::say_goodbye() {
  if (gone_) co_return;
  arm_deadline(kGoodbyeTime);
  co_await stream_->end();
  disarm_deadline();
  error_code ignored;
  socket().close(ignored);
}

HttpConnection::Incoming HttpConnection::refusal(const ApiError& error) {
  Incoming incoming;
  incoming.answer = respond(error);
  incoming.unread = true;
  incoming.wire.keep_alive = false;
  incoming.refused = " refused=" + log_value(error.message);
  return incoming;
}

std::unique_ptr<Exchange> HttpConnection::make_answer(Incoming& incoming) {
  if (incoming.answer != nullptr) return std::move(incoming.answer);
  try {
    return shared_->handler(std::move(incoming.request));
  } catch (const std::exception& thrown) {
    log_failure(thrown);
    return respond(to_api_error(thrown));
  }
}

/// Answers a request; true when another one may follow.
asio::awaitable<bool> HttpConnection::serve(Incoming incoming) {
  const auto begin = steady_clock::now();
  const std::string method = incoming.request.method;
  const std::string path = log_value(incoming.request.path);
  auto exchange = make_answer(incoming);
  const bool open = co_await answer(std::move(exchange), incoming.wire);
  const unsigned status = wire_->begun() ? wire_->status() : 0;
  const bool notable = method == "POST" || (status >= 400 && status < 500);
  spdlog::log(
      notable ? spdlog::level::info : spdlog::level::debug,
      "http client={} id={} method={} path={} status={} bytes={} ms={:.1f}{}{}",
      client_,
      request_id_.empty() ? "-" : request_id_,
      method.empty() ? "-" : method,
      path,
      status,
      total_written_,
      elapsed_ms(begin),
      incoming.refused,
      gone_ ? " left=true" : ""
  );
  if (incoming.unread && !gone_) co_await take_in_rest();
  co_return open;
}

asio::awaitable<bool> HttpConnection::read_some(std::size_t at_most) {
  const auto [error, count] =
      co_await stream_->read_some(buffer_.prepare(at_most));
  buffer_.commit(count);
  co_return !error;
}

asio::awaitable<bool> HttpConnection::wait_for_bytes() {
  if (buffer_.size() > 0) co_return true;
  if (half_closed_ || shared_->draining) co_return false;
  idle_ = true;
  idle_since_ = steady_clock::now();
  arm_deadline(shared_->limits.idle);
  const bool some = co_await read_some(kHeadPiece);
  idle_ = false;
  idle_since_ = kNever;
  co_return some;
}

asio::awaitable<HttpConnection::ReadResult> HttpConnection::read_request() {
  const bool some = co_await wait_for_bytes();
  if (!some) co_return Closed{};

  RequestReader reader(shared_->limits);
  const bool head = co_await read_head(reader);
  if (!head) co_return Closed{};
  if (reader.state() == RequestReader::State::kFailed) {
    co_return refusal(reader.error());
  }
  HttpRequest& request = reader.request();
  request.client = client_;
  request.over_loopback = over_loopback_;
  Admission admission;
  if (shared_->gate) admission = shared_->gate(request);

  Incoming incoming;
  const bool has_body = reader.state() == RequestReader::State::kBody;
  const bool unread = has_body && admission.answer != nullptr;
  if (has_body && !unread) {
    incoming.body.emplace(shared_->bodies);
    const bool body = co_await read_body(reader, *incoming.body);
    if (!body) co_return Closed{};
  }
  disarm_deadline();
  if (reader.state() == RequestReader::State::kFailed) {
    incoming = refusal(reader.error());
  } else {
    incoming.answer = std::move(admission.answer);
    incoming.unread = unread;
    incoming.wire = reader.wire();
    if (unread || shared_->draining) incoming.wire.keep_alive = false;
  }
  incoming.wire.headers = std::move(admission.headers);
  incoming.request = std::move(request);
  co_return incoming;
}

/// False when the connection ended first.
asio::awaitable<bool> HttpConnection::read_head(RequestReader& reader) {
  arm_deadline(shared_->limits.header);
  while (reader.read(buffer_) == RequestReader::State::kHead) {
    const bool more = co_await read_some(kHeadPiece);
    if (!more) co_return false;
  }
  co_return true;
}

/// As read_head. A body that comes slower than the least rate is cut.
asio::awaitable<bool> HttpConnection::read_body(
    RequestReader& reader, ByteBudget::Share& share
) {
  const HttpLimits& limits = shared_->limits;
  const auto begin = steady_clock::now();
  std::size_t came = buffer_.size();
  bool asked = !reader.expects_continue();
  while (reader.read(buffer_) == RequestReader::State::kBody) {
    if (!std::exchange(asked, true)) {
      const bool sent = co_await write_all(kContinue);
      if (!sent) co_return false;
    }
    arm_deadline(patience(begin, limits.body, came, limits.least_rate));
    const std::size_t before = buffer_.size();
    const bool more = co_await read_some(kBodyPiece);
    if (!more) co_return false;
    const std::size_t piece = buffer_.size() - before;
    came += piece;
    if (!share.grow(piece)) {
      reader.refuse(
          http_error(503, "too many large requests at once; try again later")
      );
      co_return true;
    }
  }
  co_return true;
}

asio::awaitable<bool> HttpConnection::answer(
    std::unique_ptr<Exchange> exchange, WireOptions wire
) {
  exchange_ = std::move(exchange);
  wire_.emplace(wire);
  out_.clear();
  total_written_ = 0;
  request_id_.clear();
  probe_due_ = false;
  watching_ = true;
  asio::co_spawn(
      strand_,
      watch_client(),
      asio::bind_cancellation_slot(
          stop_watching_.slot(),
          [self = shared_from_this()](std::exception_ptr) {
            self->watching_ = false;
            self->signal();
          }
      )
  );
  const auto waker = std::make_shared<Waker>(weak_from_this(), strand_);
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
  const HttpLimits& limits = shared_->limits;
  const auto begin = steady_clock::now();
  bool sent = true;
  while (sent && written_ < in_flight_.size()) {
    arm_deadline(patience(begin, limits.write, written_, limits.least_rate));
    const auto rest = asio::buffer(in_flight_) + written_;
    const auto [error, count] = co_await stream_->write_some(rest);
    written_ += count;
    total_written_ += count;
    sent = !error;
  }
  disarm_deadline();
  in_flight_.clear();
  written_ = 0;
  co_return sent;
}

/// Reads ahead while an answer is made, to see the client close or reset.
asio::awaitable<void> HttpConnection::watch_client() {
  while (!half_closed_ && buffer_.size() < kReadAhead) {
    const auto [error, count] =
        co_await stream_->read_some(buffer_.prepare(kHeadPiece));
    buffer_.commit(count);
    if (error == asio::error::operation_aborted) co_return;
    if (is_end_of_input(error)) {
      half_closed_ = true;
    } else if (error) {
      leave("it is gone");
      co_return;
    }
  }
  if (half_closed_ && wire_->http11() && !wire_->begun()) {
    probe_due_ = true;
    signal();
  }
  const auto [ec] =
      co_await socket().async_wait(tcp::socket::wait_error, use_result);
  if (!ec && client_is_gone()) leave("it is gone");
}

bool HttpConnection::client_is_gone() {
  pollfd descriptor{socket().native_handle(), 0, 0};
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

/// Takes in what the client still sends of a request that was answered before
/// its end: closing at once would make its system throw the answer away.
asio::awaitable<void> HttpConnection::take_in_rest() {
  arm_deadline(kDiscardTime);
  co_await stream_->end();
  buffer_.clear();
  for (std::size_t total = 0; total < kDiscardBytes;) {
    const auto [ec, count] = co_await socket().async_read_some(
        buffer_.prepare(kBodyPiece), use_result
    );
    if (ec) break;
    total += count;
  }
}

void HttpConnection::wake_up() {
  try {
    on_wake();
  } catch (const std::exception& thrown) {
    log_failure(thrown);
    leave("its answer failed");
  }
}

void HttpConnection::log_failure(const std::exception& thrown) const {
  spdlog::error("http client={} error={}", client_, log_value(thrown.what()));
}

void HttpConnection::on_wake() {
  if (exchange_ == nullptr || gone_ || wire_->done()) return;
  const Output output = exchange_->take();
  if (output.head) request_id_ = request_id_of(*output.head);
  out_ += wire_->write(output);
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
  socket().close(ignored);
  signal();
}

void HttpConnection::arm_deadline(std::chrono::milliseconds timeout) {
  arm_deadline(steady_clock::now() + timeout);
}

void HttpConnection::arm_deadline(steady_clock::time_point when) {
  deadline_.expires_at(when);
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
