#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "engine/request.h"

namespace afterglow {

/// A request's events for one waiting thread.
/// Thread: safe from any thread.
class EventQueue : public EventSink {
 public:
  bool send(Event event) override {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    changed_.notify_one();
    return true;
  }

  /// The next event, or none when none came in time.
  std::optional<Event> pop(std::chrono::milliseconds at_most) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, at_most, [this] {
          return !events_.empty();
        })) {
      return std::nullopt;
    }
    Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Event> events_;
};

}  // namespace afterglow
