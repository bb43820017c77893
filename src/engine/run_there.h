#pragma once

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "engine/runner.h"

namespace afterglow {

/// Runs a task on the generation thread by `post`, which is Scheduler::post or
/// forwards to it, and waits for its value. None: the engine stopped first.
/// Thread: any but the generation thread.
template <class Value, class Post>
std::optional<Value> run_there(
    const Post& post, std::function<Value(Runner&)> task
) {
  auto promise = std::make_shared<std::promise<Value>>();
  std::future<Value> value = promise->get_future();
  bool posted = post([promise, task = std::move(task)](Runner& runner) {
    promise->set_value(task(runner));
  });
  promise.reset();  // so that a task that is never run breaks the promise
  if (!posted) {
    return std::nullopt;
  }
  try {
    return value.get();
  } catch (const std::future_error&) {
    return std::nullopt;
  }
}

}  // namespace afterglow
