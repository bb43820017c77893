#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <memory>
#include <utility>

namespace afterglow {

/// Runs a function on a socket's strand when it is woken; many wakes before
/// the strand comes round are one. Held by a shared_ptr.
/// Thread: safe from any thread.
class StrandWaker : public std::enable_shared_from_this<StrandWaker> {
 public:
  using Executor = boost::asio::ip::tcp::socket::executor_type;

  StrandWaker(Executor strand, std::function<void()> run)
      : strand_(std::move(strand)), run_(std::move(run)) {}

  void wake() {
    if (pending_.exchange(true)) return;
    boost::asio::post(strand_, [self = shared_from_this()] {
      self->pending_ = false;
      self->run_();
    });
  }

 private:
  const Executor strand_;
  const std::function<void()> run_;
  std::atomic<bool> pending_{false};
};

}  // namespace afterglow
