#pragma once

#include <mutex>
#include <utility>

#include "base/result.h"
#include "engine/engine.h"

namespace afterglow {

/// Where the server finds the engine: it listens before the model is loaded.
/// Thread: safe from any thread. The engine must outlive all users.
class EngineSlot {
 public:
  enum class State { kLoading, kReady, kFailed, kStopping };
  struct View {
    State state = State::kLoading;
    Engine* engine = nullptr;  // when ready
    Error error{Code::kUnavailable, "the model is still being loaded"};
  };

  void set_ready(Engine& engine) {
    const std::lock_guard lock(mutex_);
    view_ = {State::kReady, &engine, {}};
  }
  void set_failed(Error error) {
    const std::lock_guard lock(mutex_);
    view_ = {State::kFailed, nullptr, std::move(error)};
  }
  /// From now on requests find no engine; those under way keep theirs.
  void set_stopping() {
    const std::lock_guard lock(mutex_);
    view_ = {
        State::kStopping,
        nullptr,
        {Code::kUnavailable, "the server is shutting down"}};
  }
  View view() const {
    const std::lock_guard lock(mutex_);
    return view_;
  }

 private:
  mutable std::mutex mutex_;
  View view_;
};

}  // namespace afterglow
