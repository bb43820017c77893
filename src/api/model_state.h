#pragma once

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

  /// As Model::close; later calls return what the first did.
  bool close(std::chrono::nanoseconds write_time) {
    std::call_once(closed_, [&] {
      auto now = std::chrono::steady_clock::now();
      complete_ = engine_->shutdown(now, now + write_time);
    });
    return complete_;
  }

 private:
  std::unique_ptr<Engine> engine_;
  std::once_flag closed_;
  bool complete_ = false;
};

}  // namespace afterglow
