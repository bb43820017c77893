#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "server/http_server.h"
#include "server/test_client.h"

namespace afterglow::testing {

/// What the test sees of exchanges that end when the test says so.
struct Stage {
  std::mutex mutex;
  std::condition_variable changed;
  int alive = 0;
  std::vector<std::function<void(Output)>> outlets;

  bool wait_alive(int count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(30), [&] {
      return alive == count;
    });
  }
  bool alive_is(int count) {
    const std::lock_guard lock(mutex);
    return alive == count;
  }
  /// Waits for the n-th exchange and gives it output.
  bool emit(std::size_t n, Output output) {
    std::unique_lock lock(mutex);
    if (!changed.wait_for(lock, std::chrono::seconds(30), [&] {
          return outlets.size() > n;
        })) {
      return false;
    }
    outlets[n](std::move(output));
    return true;
  }
};

/// An exchange that says what the stage gives it.
class Staged : public Exchange {
 public:
  explicit Staged(std::shared_ptr<Stage> stage) : stage_(std::move(stage)) {
    const std::lock_guard lock(stage_->mutex);
    ++stage_->alive;
    stage_->changed.notify_all();
  }
  ~Staged() override {
    {
      const std::lock_guard lock(state_->mutex);
      state_->wake = nullptr;
    }
    const std::lock_guard lock(stage_->mutex);
    --stage_->alive;
    stage_->changed.notify_all();
  }
  void start(std::function<void()> wake) override {
    {
      const std::lock_guard lock(state_->mutex);
      state_->wake = std::move(wake);
    }
    const std::lock_guard lock(stage_->mutex);
    stage_->outlets.push_back([state = state_](Output output) {
      const std::lock_guard lock(state->mutex);
      if (!state->wake) return;
      if (output.head) state->output.head = std::move(output.head);
      state->output.body += output.body;
      state->output.done = output.done;
      state->wake();
    });
    stage_->changed.notify_all();
  }
  Output take() override {
    const std::lock_guard lock(state_->mutex);
    return std::exchange(state_->output, {});
  }
  void fail(const ApiError& error) override {
    const std::lock_guard lock(state_->mutex);
    state_->output = error_output(error);
  }

 private:
  struct State {
    std::mutex mutex;
    std::function<void()> wake;
    Output output;
  };
  std::shared_ptr<Stage> stage_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

/// A piece of a stream; the first has the head.
inline Output stream_piece(
    std::string body, bool first = false, bool done = false
) {
  Output output;
  if (first) {
    output.head.emplace();
    output.head->streaming = true;
    output.head->content_type = "text/event-stream";
  }
  output.body = std::move(body);
  output.done = done;
  return output;
}

/// A whole answer.
inline Output whole(std::string body) {
  Output output;
  output.head.emplace();
  output.body = std::move(body);
  output.done = true;
  return output;
}

/// Throws when it is started, or when its output is taken.
class Faulty : public Exchange {
 public:
  explicit Faulty(bool at_start) : at_start_(at_start) {}
  void start(std::function<void()> wake) override {
    if (at_start_) throw std::runtime_error("no start");
    wake();
  }
  Output take() override { throw std::runtime_error("no output"); }
  void fail(const ApiError&) override {}

 private:
  const bool at_start_;
};

/// A server whose paths name how they are answered.
class HttpServerTest : public ::testing::Test {
 protected:
  void serve(HttpLimits limits = {}, const char* host = "127.0.0.1") {
    HttpOptions options;
    options.host = host;
    options.port = 0;
    options.limits = limits;
    auto started = HttpServer::start(options, [this](HttpRequest request) {
      return handle(std::move(request));
    });
    ASSERT_TRUE(started.ok()) << started.error().message;
    server_ = *std::move(started);
  }
  void TearDown() override { server_.reset(); }

  std::unique_ptr<Exchange> handle(HttpRequest request) {
    if (request.path == "/stage") return std::make_unique<Staged>(stage_);
    if (request.path == "/throw") throw std::runtime_error("no luck");
    if (request.path == "/full") throw std::bad_alloc();
    if (request.path == "/throw/start") return std::make_unique<Faulty>(true);
    if (request.path == "/throw/take") return std::make_unique<Faulty>(false);
    if (request.path == "/who") {
      return respond(
          ResponseHead{},
          request.client + (request.over_loopback ? " loopback" : " other")
      );
    }
    return respond(
        ResponseHead{},
        request.method + " " + request.path + " " +
            std::to_string(request.body.size())
    );
  }

  std::uint16_t port() const { return server_->port(); }

  std::shared_ptr<Stage> stage_ = std::make_shared<Stage>();
  std::unique_ptr<HttpServer> server_;
};

}  // namespace afterglow::testing
