#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace afterglow {

/// A number of bytes that several share. Thread: safe from any thread.
class ByteBudget {
 public:
  explicit ByteBudget(std::size_t bytes) : left_(bytes) {}

  /// What one of them has taken; given back when it dies. The budget must
  /// outlive it. Thread: one thread at a time.
  class Share {
   public:
    explicit Share(ByteBudget& budget) : budget_(&budget) {}
    Share(Share&& other) noexcept
        : budget_(other.budget_), bytes_(std::exchange(other.bytes_, 0)) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share() { budget_->left_ += bytes_; }

    /// Takes more; false, and nothing is taken, where there is no more.
    bool grow(std::size_t bytes) {
      std::size_t left = budget_->left_;
      do {
        if (left < bytes) return false;
      } while (!budget_->left_.compare_exchange_weak(left, left - bytes));
      bytes_ += bytes;
      return true;
    }

   private:
    ByteBudget* budget_;
    std::size_t bytes_ = 0;
  };

  std::size_t left() const { return left_; }

 private:
  std::atomic<std::size_t> left_;
};

}  // namespace afterglow
