#include "server/incoming_request.h"

#include <chrono>
#include <utility>

#include "server/log_value.h"
#include "server/request_reader.h"

namespace afterglow {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;
using State = RequestReader::State;

constexpr std::size_t kBodyPiece = 64 << 10;

/// False when the connection ended first.
asio::awaitable<bool> read_head(
    ClientLink& link, const HttpLimits& limits, RequestReader& reader
) {
  const auto until = steady_clock::now() + limits.header;
  while (reader.read(link.buffer()) == State::kHead) {
    const bool more = co_await link.read_some(kHeadPiece, until);
    if (!more) co_return false;
  }
  co_return true;
}

/// As read_head.
asio::awaitable<bool> read_body(
    ClientLink& link,
    const HttpLimits& limits,
    RequestReader& reader,
    ByteBudget::Share& share
) {
  const auto begin = steady_clock::now();
  std::size_t came = link.buffer().size();
  bool asked = !reader.expects_continue();
  while (reader.read(link.buffer()) == State::kBody) {
    if (!std::exchange(asked, true)) {
      const bool sent = co_await link.write_all(kContinue);
      if (!sent) co_return false;
    }
    const std::size_t before = link.buffer().size();
    const bool more = co_await link.read_some(
        kBodyPiece, link.patience(begin, limits.body, came)
    );
    if (!more) co_return false;
    const std::size_t piece = link.buffer().size() - before;
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

}  // namespace

IncomingRequest refusal(const ApiError& error) {
  IncomingRequest incoming;
  incoming.answer = respond(error);
  incoming.unread = true;
  incoming.wire.keep_alive = false;
  incoming.refused = " refused=" + log_value(error.message);
  return incoming;
}

asio::awaitable<std::optional<IncomingRequest>> read_request(
    ClientLink& link, HttpConnections& shared
) {
  RequestReader reader(shared.limits);
  const bool head = co_await read_head(link, shared.limits, reader);
  if (!head) co_return std::nullopt;
  if (reader.state() == State::kFailed) co_return refusal(reader.error());
  HttpRequest& request = reader.request();
  request.client = link.name();
  request.over_loopback = link.over_loopback();
  Admission admission;
  if (shared.gate) admission = shared.gate(request);

  IncomingRequest incoming;
  const bool has_body = reader.state() == State::kBody;
  const bool unread = has_body && admission.answer != nullptr;
  if (has_body && !unread) {
    incoming.body.emplace(shared.bodies);
    const bool body =
        co_await read_body(link, shared.limits, reader, *incoming.body);
    if (!body) co_return std::nullopt;
  }
  if (reader.state() == State::kFailed) {
    incoming = refusal(reader.error());
  } else {
    incoming.answer = std::move(admission.answer);
    incoming.unread = unread;
    incoming.wire = reader.wire();
    if (unread || shared.draining) incoming.wire.keep_alive = false;
  }
  incoming.wire.headers = std::move(admission.headers);
  incoming.request = std::move(request);
  co_return incoming;
}

}  // namespace afterglow
