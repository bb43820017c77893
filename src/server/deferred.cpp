#include "server/deferred.h"

#include <mutex>
#include <optional>
#include <utility>

namespace afterglow {
namespace {

class Deferred : public Exchange {
 public:
  Deferred(Workers& workers, std::function<Output()> work)
      : workers_(workers), work_(std::move(work)) {}

  ~Deferred() override {
    const std::lock_guard lock(state_->mutex);
    state_->wake = nullptr;
  }

  void start(std::function<void()> wake) override {
    {
      const std::lock_guard lock(state_->mutex);
      state_->wake = std::move(wake);
    }
    workers_.post([state = state_, work = std::move(work_)] {
      Output output = work();
      const std::lock_guard lock(state->mutex);
      if (!state->wake) return;
      if (!state->failed) state->output = std::move(output);
      state->wake();
    });
  }

  Output take() override {
    const std::lock_guard lock(state_->mutex);
    return std::exchange(state_->output, {});
  }

  void fail(const ApiError& error) override {
    const std::lock_guard lock(state_->mutex);
    state_->failed = true;
    state_->output = error_output(error);
  }

 private:
  struct State {
    std::mutex mutex;
    std::function<void()> wake;  // none: nobody waits any more
    Output output;
    bool failed = false;
  };

  Workers& workers_;
  std::function<Output()> work_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace

std::unique_ptr<Exchange> defer(
    Workers& workers, std::function<Output()> work
) {
  return std::make_unique<Deferred>(workers, std::move(work));
}

}  // namespace afterglow
