#pragma once

#include <unistd.h>

#include <atomic>
#include <memory>
#include <utility>

#include "afterglow/error.h"
#include "gil.h"

namespace afterglow::python {

/// A value of the library, of the process that made it. A forked process has
/// its memory but none of the threads that it works with: there it can neither
/// be used nor destroyed.
/// Thread: the GIL.
template <class T>
class Owned {
 public:
  explicit Owned(T value) : value_(std::make_unique<T>(std::move(value))) {}
  Owned(Owned&&) noexcept = default;
  ~Owned() { reset(); }

  T& operator*() const {
    if (process_ != getpid()) {
      throw Exception(
          Code::kUnavailable,
          "[afterglow] a model and what comes of it live in the process that "
          "loaded it; load it anew in a forked process"
      );
    }
    if (!value_) {
      throw Exception(Code::kUnavailable, "[afterglow] it has been closed");
    }
    return *value_;
  }
  T* operator->() const { return &**this; }

  void reset() {
    if (!value_) return;
    if (process_ != getpid()) {
      value_.release();
      return;
    }
    const GilReleased released;
    std::exchange(value_, nullptr).reset();
  }

 private:
  std::unique_ptr<T> value_;
  pid_t process_ = getpid();
};

/// Keeps all but one thread out of what is for one thread at a time.
class OneThread {
 public:
  explicit OneThread(std::atomic_flag& busy) : busy_(busy) {
    if (busy_.test_and_set()) {
      throw Exception(
          Code::kUnavailable, "[afterglow] another thread is using this stream"
      );
    }
  }
  ~OneThread() { busy_.clear(); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  std::atomic_flag& busy_;
};

}  // namespace afterglow::python
