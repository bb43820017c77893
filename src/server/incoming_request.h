#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>

#include "server/byte_budget.h"
#include "server/client_link.h"
#include "server/exchange.h"
#include "server/http_connections.h"
#include "server/http_wire.h"

namespace afterglow {

/// A request, or what a client sent for one, that gets an answer.
struct IncomingRequest {
  HttpRequest request;
  WireOptions wire;
  std::unique_ptr<Exchange> answer;       // null: the handler makes it
  bool unread = false;                    // the client may still be sending it
  std::string refused;                    // for the log
  std::optional<ByteBudget::Share> body;  // held until it is answered
};

/// For bytes that are no request, or one that is not taken.
IncomingRequest refusal(const ApiError& error);

/// Reads a request whose first bytes are there, and asks the gate before it
/// takes the body. Nothing when the connection ended first. A body that comes
/// slower than the least rate is cut.
boost::asio::awaitable<std::optional<IncomingRequest>> read_request(
    ClientLink& link, HttpConnections& shared
);

/// Tells a client to go on.
inline constexpr char kContinue[] = "HTTP/1.1 100 Continue\r\n\r\n";
/// How much of a head is read at once.
inline constexpr std::size_t kHeadPiece = 4 << 10;

}  // namespace afterglow
