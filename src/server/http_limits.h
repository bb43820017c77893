#pragma once

#include <chrono>
#include <cstddef>

namespace afterglow {

/// What one client may cost.
struct HttpLimits {
  std::size_t header_bytes = 16 << 10;
  std::size_t body_bytes = 32 << 20;
  /// Bodies of all requests that are read or answered together.
  std::size_t all_bodies_bytes = 512 << 20;
  /// Beyond it the longest idle one makes room; where none is idle the new one
  /// is answered 503.
  std::size_t connections = 512;
  /// Output that a client has not taken yet; beyond it the client is cut.
  std::size_t lag_bytes = 1 << 20;
  /// Bytes a second, on the average after the grace that `body` and `write`
  /// are, that a body must come and an answer be taken with: who trickles
  /// holds no connection for ever.
  std::size_t least_rate = 16 << 10;
  std::chrono::milliseconds handshake{10'000};  // of TLS
  std::chrono::milliseconds idle{75'000};       // between requests
  std::chrono::milliseconds header{15'000};     // first byte to end of header
  std::chrono::milliseconds body{30'000};       // between two pieces of a body
  std::chrono::milliseconds write{30'000};      // until some output is taken
};

}  // namespace afterglow
