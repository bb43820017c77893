#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

#include "engine/engine.h"

namespace afterglow {

/// What all handles of a model share.
class ModelState {
 public:
  explicit ModelState(std::unique_ptr<Engine> engine)
      : engine_(std::move(engine)) {}
  ~ModelState() { close(std::chrono::seconds(30)); }

  Engine& engine() { return *engine_; }

  /// As Model::close.
  bool close(std::chrono::nanoseconds write_time) {
    const std::lock_guard lock(mutex_);
    if (!complete_) {
      auto now = std::chrono::steady_clock::now();
      // So far that adding it to the time cannot overflow.
      constexpr std::chrono::nanoseconds kLong = std::chrono::hours(24 * 365);
      complete_ = engine_->shutdown(now, now + std::min(write_time, kLong));
    }
    return complete_;
  }

 private:
  std::unique_ptr<Engine> engine_;
  std::mutex mutex_;
  bool complete_ = false;  // guarded by mutex_
};

}  // namespace afterglow
