#include "server/http_connection.h"

#include <poll.h>
#include <spdlog/spdlog.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "server/log_value.h"
#include "server/request_reader.h"
#include "server/strand_waker.h"

namespace afterglow {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto use_result = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t kReadAhead = 64 << 10;
/// How often a client that sends no more is asked for a sign of life.
constexpr auto kProbeEvery = 5s;
constexpr auto kForever = 24h * 365;
constexpr auto kNever = steady_clock::time_point::max();

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

/// Whether nothing can be sent to the client any more either.
bool has_hung_up(tcp::socket& socket) {
  pollfd descriptor{socket.native_handle(), 0, 0};
  return ::poll(&descriptor, 1, 0) > 0 &&
         (descriptor.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
}

}  // namespace

HttpConnection::HttpConnection(
    std::unique_ptr<ByteStream> stream, std::shared_ptr<HttpConnections> shared
)
    : shared_(std::move(shared)),
      link_(std::make_shared<ClientLink>(std::move(stream), shared_->limits)),
      strand_(link_->socket().get_executor()),
      signal_(strand_) {}

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
    if (self->idle_) self->link_->close();
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
    if (self->exchange_ != nullptr) {
      self->exchange_->fail(error);
      self->wake_up();
    } else {
      self->link_->close();
    }
  });
}

void HttpConnection::close() {
  asio::post(strand_, [self = shared_from_this()] {
    self->leave("the server closes");
  });
}

void HttpConnection::leave(const char* why) {
  link_->cut(why);
  signal();
}

asio::awaitable<void> HttpConnection::run(bool refuse) {
  const bool opened = co_await open();
  if (!opened) co_return;
  if (refuse) {
    IncomingRequest incoming =
        refusal(http_error(503, "too many connections; try again later"));
    co_await serve(std::move(incoming));
    co_return;
  }
  for (bool open = true; open;) {
    const bool some = co_await wait_for_bytes();
    if (!some) break;
    auto incoming = co_await read_request(*link_, *shared_);
    if (!incoming) break;
    open = co_await serve(*std::move(incoming));
  }
  co_await link_->say_goodbye();
}

asio::awaitable<bool> HttpConnection::open() {
  if (shared_->draining) co_return false;
  idle_ = true;
  const auto error = co_await link_->open();
  idle_ = false;
  if (!error) co_return true;
  spdlog::info(
      "http client={} tls={}", link_->name(), log_value(error.message())
  );
  if (gone() || !is_plain_http(error)) co_return false;
  link_->go_on_plain();
  co_await serve(refusal(
      http_error(400, "this server speaks HTTP over TLS; ask it by https://")
  ));
  co_return false;
}

asio::awaitable<bool> HttpConnection::wait_for_bytes() {
  if (link_->buffer().size() > 0) co_return true;
  if (half_closed_ || shared_->draining) co_return false;
  idle_ = true;
  idle_since_ = steady_clock::now();
  const bool some = co_await link_->read_some(
      kHeadPiece, steady_clock::now() + shared_->limits.idle
  );
  idle_ = false;
  idle_since_ = kNever;
  co_return some;
}

std::unique_ptr<Exchange> HttpConnection::make_answer(IncomingRequest& incoming
) {
  if (incoming.answer != nullptr) return std::move(incoming.answer);
  try {
    return shared_->handler(std::move(incoming.request));
  } catch (const std::exception& thrown) {
    log_failure(thrown);
    return respond(to_api_error(thrown));
  }
}

/// Answers a request; true when another one may follow.
asio::awaitable<bool> HttpConnection::serve(IncomingRequest incoming) {
  const auto begin = steady_clock::now();
  const std::size_t written = link_->written();
  const std::string method = incoming.request.method;
  const std::string path = log_value(incoming.request.path);
  auto exchange = make_answer(incoming);
  const bool open = co_await answer(std::move(exchange), incoming.wire);
  const unsigned status = wire_->begun() ? wire_->status() : 0;
  if (status != 0) shared_->responses->add(status);
  const bool looks = method == "GET" || method == "HEAD" || method == "OPTIONS";
  // Whoever waits for a server to be ready asks often.
  const bool notable = !looks || (status >= 400 && path != "/health");
  spdlog::log(
      notable ? spdlog::level::info : spdlog::level::debug,
      "http client={} id={} method={} path={} status={}{} bytes={} "
      "ms={:.1f}{}{}",
      link_->name(),
      request_id_.empty() ? "-" : request_id_,
      method.empty() ? "-" : method,
      path,
      status,
      fault_,
      link_->written() - written,
      elapsed_ms(begin),
      incoming.refused,
      gone() ? " left=true" : ""
  );
  if (incoming.unread && !gone()) co_await link_->take_in_rest();
  co_return open;
}

asio::awaitable<bool> HttpConnection::answer(
    std::unique_ptr<Exchange> exchange, WireOptions wire
) {
  exchange_ = std::move(exchange);
  wire_.emplace(wire);
  out_.clear();
  request_id_.clear();
  fault_.clear();
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
  const auto waker =
      std::make_shared<StrandWaker>(strand_, [weak = weak_from_this()] {
        if (const auto alive = weak.lock()) alive->wake_up();
      });
  exchange_->start([waker] { waker->wake(); });

  co_await write_response();
  if (gone() && !wire_->done()) {
    spdlog::info("http client={} cut=\"{}\"", link_->name(), link_->cut_for());
  }
  exchange_.reset();
  stop_watching_.emit(asio::cancellation_type::terminal);
  while (watching_) {
    co_await wait_for_signal(kForever);
  }
  co_return !gone() && wire_->keep_alive() && !half_closed_ &&
      !shared_->draining;
}

asio::awaitable<void> HttpConnection::write_response() {
  while (!gone()) {
    if (!out_.empty()) {
      const bool sent = co_await link_->write_all(std::exchange(out_, {}));
      if (!sent) leave("it does not take its answer");
    } else if (wire_->done()) {
      co_return;
    } else if (probe_due_) {
      probe_due_ = false;
      const bool sent = co_await link_->write_all(kContinue);
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

/// Reads ahead while an answer is made, to see the client close or reset.
asio::awaitable<void> HttpConnection::watch_client() {
  while (!half_closed_ && link_->buffer().size() < kReadAhead) {
    const auto error = co_await link_->read_ahead(kHeadPiece);
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
  tcp::socket& socket = link_->socket();
  const auto [ec] =
      co_await socket.async_wait(tcp::socket::wait_error, use_result);
  if (!ec && has_hung_up(socket)) leave("it is gone");
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

void HttpConnection::wake_up() {
  try {
    on_wake();
  } catch (const std::exception& thrown) {
    log_failure(thrown);
    leave("its answer failed");
  }
}

void HttpConnection::on_wake() {
  if (exchange_ == nullptr || gone() || wire_->done()) return;
  Output output = exchange_->take();
  if (output.head) {
    request_id_ = request_id_of(*output.head);
    fault_ = std::move(output.head->fault);
    output.head->headers.emplace_back(
        "Date", http_date(std::chrono::system_clock::now())
    );
  }
  if (shared_->draining) wire_->close_after();
  out_ += wire_->write(output);
  const std::size_t unsent = out_.size() + link_->unsent();
  if (wire_->streaming() && unsent > shared_->limits.lag_bytes) {
    leave("it lags too far behind its answer");
    return;
  }
  signal();
}

void HttpConnection::log_failure(const std::exception& thrown) const {
  spdlog::error(
      "http client={} error={}", link_->name(), log_value(thrown.what())
  );
}

}  // namespace afterglow
