#include "cli/signals.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/check.h"

namespace afterglow {
namespace {

int read_end = -1;   // that of the one object, else -1
int write_end = -1;  // set before the handlers are

void on_signal(int) {
  const int saved = errno;
  const char byte = 0;
  // A full pipe means that enough signals wait already.
  [[maybe_unused]] const auto written = ::write(write_end, &byte, 1);
  errno = saved;
}

void set_handler(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(number, &action, nullptr);
}

}  // namespace

Signals::Signals() {
  int ends[2];
  CHECK(::pipe(ends) == 0, "no pipe for signals");
  for (const int end : ends) {
    ::fcntl(end, F_SETFD, FD_CLOEXEC);
    ::fcntl(end, F_SETFL, O_NONBLOCK);
  }
  read_end = ends[0];
  write_end = ends[1];
  set_handler(SIGINT, on_signal);
  set_handler(SIGTERM, on_signal);
  set_handler(SIGPIPE, SIG_IGN);
}

Signals::~Signals() {
  set_handler(SIGINT, SIG_DFL);
  set_handler(SIGTERM, SIG_DFL);
  ::close(std::exchange(read_end, -1));
  ::close(write_end);
}

bool Signals::wait(std::chrono::milliseconds at_most) {
  pollfd descriptor{read_end, POLLIN, 0};
  ::poll(&descriptor, 1, static_cast<int>(at_most.count()));
  char byte;
  return ::read(read_end, &byte, 1) == 1;
}

bool Signals::watched() {
  return read_end >= 0;
}

bool Signals::pending() {
  pollfd descriptor{read_end, POLLIN, 0};
  return watched() && ::poll(&descriptor, 1, 0) == 1;
}

}  // namespace afterglow
