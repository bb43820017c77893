#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/byte_budget.h"
#include "server/exchange.h"
#include "server/http_limits.h"
#include "server/response_counts.h"

namespace afterglow {

class HttpConnection;

/// What connections share: gate and handler, the limits and the list of those
/// that live. Thread: safe from any thread.
class HttpConnections {
 public:
  HttpConnections(
      HttpGate gate,
      HttpHandler handler,
      HttpLimits limits,
      std::shared_ptr<ResponseCounts> responses
  )
      : gate(std::move(gate)),
        handler(std::move(handler)),
        limits(limits),
        responses(std::move(responses)),
        bodies(limits.all_bodies_bytes) {}

  const HttpGate gate;
  const HttpHandler handler;
  const HttpLimits limits;
  const std::shared_ptr<ResponseCounts> responses;
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

}  // namespace afterglow
