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

void on_signal(int number) {
  const int saved = errno;
  const char byte = static_cast<char>(number);
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

/// One that hung up cannot be opened.
bool has_terminal() {
  const int terminal = ::open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
  if (terminal >= 0) ::close(terminal);
  return terminal >= 0;
}

}  // namespace

Signals::Signals() : had_terminal_(has_terminal()) {
  int ends[2];
  CHECK(::pipe(ends) == 0, "no pipe for signals");
  for (const int end : ends) {
    ::fcntl(end, F_SETFD, FD_CLOEXEC);
    ::fcntl(end, F_SETFL, O_NONBLOCK);
  }
  read_end = ends[0];
  write_end = ends[1];
  also({SIGINT, SIGTERM});
  ::sigaction(SIGPIPE, nullptr, &broken_pipe_);
  set_handler(SIGPIPE, SIG_IGN);
}

Signals::~Signals() {
  for (const Watched& one : watched_) {
    ::sigaction(one.number, &one.before, nullptr);
  }
  ::sigaction(SIGPIPE, &broken_pipe_, nullptr);
  const int waiting = taken_ ? 0 : take(std::chrono::milliseconds(0));
  ::close(std::exchange(read_end, -1));
  ::close(write_end);
  if (waiting != 0) ::raise(waiting);
}

void Signals::also(std::initializer_list<int> numbers) {
  for (const int number : numbers) {
    struct sigaction before {};
    ::sigaction(number, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;
    watched_.push_back({number, before});
    set_handler(number, on_signal);
  }
}

int Signals::take(std::chrono::milliseconds at_most) {
  pollfd descriptor{read_end, POLLIN, 0};
  ::poll(&descriptor, 1, static_cast<int>(at_most.count()));
  char byte;
  if (::read(read_end, &byte, 1) != 1) return 0;
  taken_ = true;
  return byte;
}

bool Signals::lost_terminal() const {
  return had_terminal_ && !has_terminal();
}

bool Signals::wait_with(int other) {
  pollfd both[2] = {{other, POLLIN, 0}, {read_end, POLLIN, 0}};
  while (::poll(both, 2, -1) < 0) {
    CHECK(errno == EINTR, "poll failed");
  }
  return both[0].revents != 0;
}

void Signals::suspend() {
  set_handler(SIGTSTP, SIG_DFL);
  ::raise(SIGTSTP);  // returns when the process goes on
  set_handler(SIGTSTP, on_signal);
}

bool Signals::watched() {
  return read_end >= 0;
}

bool Signals::pending() {
  pollfd descriptor{read_end, POLLIN, 0};
  return watched() && ::poll(&descriptor, 1, 0) == 1;
}

}  // namespace afterglow
