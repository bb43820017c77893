#include "server/deferred.h"

#include <spdlog/spdlog.h>

#include <exception>
#include <mutex>
#include <utility>

#include "server/log_value.h"

namespace afterglow {
namespace {

Output output_of(const std::function<Output()>& work) {
  try {
    return work();
  } catch (const std::exception& thrown) {
    spdlog::error("http work error={}", log_value(thrown.what()));
    return error_output(to_api_error(thrown));
  }
}

class Deferred : public Exchange {
 public:
  Deferred(Workers& workers, std::string client, std::function<Output()> work)
      : workers_(workers), client_(std::move(client)) {
    state_->work = std::move(work);
  }

  ~Deferred() override {
    std::function<void()> wake;
    std::function<Output()> work;
    const std::lock_guard lock(state_->mutex);
    state_->wake.swap(wake);
    state_->work.swap(work);
  }

  void start(std::function<void()> wake) override {
    {
      const std::lock_guard lock(state_->mutex);
      state_->wake = std::move(wake);
    }
    workers_.post(client_, [state = state_] { run(*state); });
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
    std::function<Output()> work;  // until it begins or nobody waits
    std::function<void()> wake;    // none: nobody waits any more
    Output output;
    bool failed = false;
  };

  /// The worker's job.
  static void run(State& state) {
    std::function<Output()> work;
    {
      const std::lock_guard lock(state.mutex);
      work.swap(state.work);
    }
    if (!work) return;
    Output output = output_of(work);
    const std::lock_guard lock(state.mutex);
    if (!state.wake) return;
    if (!state.failed) state.output = std::move(output);
    state.wake();
  }

  Workers& workers_;
  const std::string client_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace

std::unique_ptr<Exchange> defer(
    Workers& workers, std::string client, std::function<Output()> work
) {
  return std::make_unique<Deferred>(
      workers, std::move(client), std::move(work)
  );
}

}  // namespace afterglow
