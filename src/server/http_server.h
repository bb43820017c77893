#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "server/exchange.h"
#include "server/http_limits.h"
#include "server/response_counts.h"

namespace afterglow {

struct HttpOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;  // 0: any free one
  int threads = 2;
  std::string ssl_cert_file;  // both, for TLS, or neither
  std::string ssl_key_file;
  HttpLimits limits;
  /// Where answers are counted; not null.
  std::shared_ptr<ResponseCounts> responses =
      std::make_shared<ResponseCounts>();
};

/// Serves HTTP/1.1 (RFC 9112), over TLS if wanted: keep-alive, pipelining,
/// chunked streams. While an exchange works, its connection is watched: when
/// the client is gone the exchange is destroyed. A client that only closed its
/// sending side is not gone and gets its answer. Thread: all members safe from
/// any thread.
class HttpServer {
 public:
  /// Binds, listens and starts the threads.
  /// Errors: kInvalidArgument for a bad host, kIo when the port is taken or
  /// may not be bound, those of make_tls_context; the message says which and
  /// why.
  /// gate: sees each request first; none lets all pass.
  static Result<std::unique_ptr<HttpServer>> start(
      const HttpOptions& options, HttpHandler handler, HttpGate gate = {}
  );
  /// Cuts what is still running.
  ~HttpServer();

  std::uint16_t port() const;
  /// "http://127.0.0.1:8080".
  std::string url() const;
  /// Whether only this machine can reach it.
  bool on_loopback() const;
  std::size_t connections() const;

  /// Reads certificate and key anew, for the connections that come from now
  /// on; those that are open keep what they have. Does nothing without TLS.
  /// Errors: those of make_tls_context; then the old ones stay.
  Status renew_tls();

  /// Stops accepting and closes connections that wait for a request; running
  /// exchanges go on and their connections close behind them.
  void drain();
  /// Waits until no connection is left; false when the deadline passed.
  bool wait_drained(std::chrono::steady_clock::time_point deadline);
  /// Ends running exchanges with this error. Call drain first.
  void cut(const ApiError& error);

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace afterglow
