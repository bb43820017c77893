#include "server/http_connections.h"

#include <utility>

#include "server/http_connection.h"

namespace afterglow {

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

bool HttpConnections::wait_none(std::chrono::steady_clock::time_point deadline
) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return live_.empty(); });
}

}  // namespace afterglow
