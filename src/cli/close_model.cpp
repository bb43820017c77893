#include "cli/close_model.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <future>

namespace afterglow {
namespace {

using namespace std::chrono_literals;

constexpr auto kTick = 50ms;
constexpr auto kFlushTime = 30s;

}  // namespace

void close_model(Model& model, Signals& signals) {
  auto closed = std::async(std::launch::async, [&model] {
    return model.close(kFlushTime);
  });
  do {
    const int number = signals.take(0ms);
    if (number != 0 && number != SIGWINCH && number != SIGTSTP) {
      std::_Exit(128 + number);
    }
  } while (closed.wait_for(kTick) != std::future_status::ready);
  if (!closed.get()) {
    std::fprintf(
        stderr, "afterglow: some of the prompt cache did not reach the disk\n"
    );
  }
}

}  // namespace afterglow
