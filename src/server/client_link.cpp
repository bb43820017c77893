#include "server/client_link.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "server/ip_address.h"

namespace afterglow {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto use_result = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t kDiscardBytes = 64 << 20;
constexpr std::size_t kDiscardPiece = 64 << 10;
constexpr auto kDiscardTime = 2s;
constexpr auto kGoodbyeTime = 2s;

}  // namespace

ClientLink::ClientLink(
    std::unique_ptr<ByteStream> stream, const HttpLimits& limits
)
    : limits_(limits),
      stream_(std::move(stream)),
      deadline_(socket().get_executor()) {
  error_code ignored;
  const auto endpoint = socket().remote_endpoint(ignored);
  const auto local = socket().local_endpoint(ignored);
  over_loopback_ = unmapped(local.address()).is_loopback();
  name_ = unmapped(endpoint.address()).to_string() + ":" +
          std::to_string(endpoint.port());
}

asio::awaitable<ClientLink::error_code> ClientLink::open() {
  arm_deadline(steady_clock::now() + limits_.handshake);
  const error_code error = co_await stream_->open();
  disarm_deadline();
  co_return error;
}

void ClientLink::go_on_plain() {
  stream_ = plain_stream(std::move(socket()));
}

asio::awaitable<void> ClientLink::say_goodbye() {
  if (cut_for_ != nullptr) co_return;
  arm_deadline(steady_clock::now() + kGoodbyeTime);
  co_await stream_->end();
  disarm_deadline();
  close();
}

void ClientLink::close() {
  error_code ignored;
  socket().close(ignored);
}

void ClientLink::cut(const char* why) {
  if (cut_for_ != nullptr) return;
  cut_for_ = why;
  close();
}

asio::awaitable<bool> ClientLink::read_some(
    std::size_t at_most, time_point until
) {
  arm_deadline(until);
  const error_code error = co_await read_ahead(at_most);
  disarm_deadline();
  co_return !error;
}

asio::awaitable<ClientLink::error_code> ClientLink::read_ahead(
    std::size_t at_most
) {
  const auto [error, count] =
      co_await stream_->read_some(buffer_.prepare(at_most));
  buffer_.commit(count);
  co_return error;
}

asio::awaitable<void> ClientLink::take_in_rest() {
  arm_deadline(steady_clock::now() + kDiscardTime);
  co_await stream_->end();
  buffer_.clear();
  for (std::size_t total = 0; total < kDiscardBytes;) {
    const auto [ec, count] = co_await socket().async_read_some(
        buffer_.prepare(kDiscardPiece), use_result
    );
    if (ec) break;
    total += count;
  }
}

asio::awaitable<bool> ClientLink::write_all(std::string bytes) {
  in_flight_ = std::move(bytes);
  sent_ = 0;
  const auto begin = steady_clock::now();
  bool good = true;
  while (good && sent_ < in_flight_.size()) {
    arm_deadline(patience(begin, limits_.write, sent_));
    const auto rest = asio::buffer(in_flight_) + sent_;
    const auto [error, count] = co_await stream_->write_some(rest);
    sent_ += count;
    written_ += count;
    good = !error;
  }
  disarm_deadline();
  in_flight_.clear();
  sent_ = 0;
  co_return good;
}

ClientLink::time_point ClientLink::patience(
    time_point begin, std::chrono::milliseconds grace, std::size_t bytes
) const {
  const std::chrono::milliseconds earned(bytes * 1000 / limits_.least_rate);
  return std::min(steady_clock::now(), begin + earned) + grace;
}

void ClientLink::arm_deadline(time_point when) {
  deadline_.expires_at(when);
  deadline_.async_wait([weak = weak_from_this()](error_code ec) {
    const auto self = weak.lock();
    if (ec || !self) return;
    // A timer that went off just before it was set anew does not count.
    if (self->deadline_.expiry() > steady_clock::now()) return;
    self->cut("it took too long");
  });
}

void ClientLink::disarm_deadline() {
  deadline_.expires_at(time_point::max());
}

}  // namespace afterglow
