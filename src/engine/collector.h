#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <variant>
#include <vector>

#include "engine/request.h"

namespace afterglow {

/// An EventSink that keeps everything and can be waited for.
/// Thread: safe from any thread.
class Collector : public EventSink {
 public:
  bool send(Event event) override {
    std::lock_guard lock(mutex_);
    if (auto* token = std::get_if<TokenOut>(&event)) {
      tokens_.push_back(token->token);
    } else if (auto* finished = std::get_if<Finished>(&event)) {
      finished_ = *finished;
    } else if (auto* failed = std::get_if<Failed>(&event)) {
      failed_ = *failed;
    } else {
      progress_.push_back(std::get<Progress>(event));
    }
    changed_.notify_all();
    return !(stop_after_ && tokens_.size() >= *stop_after_);
  }

  /// Makes send() report a departed client once n tokens have come.
  void leave_after(std::size_t n) { stop_after_ = n; }

  /// Waits until the request has ended. False after a minute.
  bool wait() {
    return wait_for([&] { return finished_ || failed_; });
  }
  bool wait_for_tokens(std::size_t n) {
    return wait_for([&] { return tokens_.size() >= n; });
  }
  bool wait_for_progress(std::size_t done) {
    return wait_for([&] {
      return !progress_.empty() && progress_.back().done >= done;
    });
  }

  std::vector<Token> tokens() const {
    std::lock_guard lock(mutex_);
    return tokens_;
  }
  Progress last_progress() const {
    std::lock_guard lock(mutex_);
    return progress_.empty() ? Progress() : progress_.back();
  }
  std::optional<Finished> finished() const {
    std::lock_guard lock(mutex_);
    return finished_;
  }
  std::optional<Failed> failed() const {
    std::lock_guard lock(mutex_);
    return failed_;
  }

 private:
  template <class Condition>
  bool wait_for(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1), condition);
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Token> tokens_;
  std::vector<Progress> progress_;
  std::optional<Finished> finished_;
  std::optional<Failed> failed_;
  std::optional<std::size_t> stop_after_;
};

}  // namespace afterglow
