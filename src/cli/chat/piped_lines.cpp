#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>

#include "cli/chat/line_source.h"

namespace afterglow {
namespace {

class PipedLines : public LineSource {
 public:
  explicit PipedLines(Signals& signals) : signals_(signals) {}

  UserLine read() override {
    for (;;) {
      const auto end = waiting_.find('\n', searched_);
      if (end != waiting_.npos) return {UserLine::Kind::kLine, take(end)};
      searched_ = waiting_.size();
      if (over_ && waiting_.empty()) return {UserLine::Kind::kEnd, {}};
      if (over_) return {UserLine::Kind::kLine, take(waiting_.size())};
      if (signals_.wait_with(STDIN_FILENO)) {
        fill();
      } else if (const int number = signals_.take(std::chrono::milliseconds(0));
                 number == SIGTSTP) {
        signals_.suspend();
      } else if (number != 0 && number != SIGWINCH) {
        return {UserLine::Kind::kSignal, {}, number};
      }
    }
  }
  void remember(const std::string&) override {}

 private:
  std::string take(std::size_t end) {
    std::string line = waiting_.substr(0, end);
    waiting_.erase(0, end + 1);
    searched_ = 0;
    if (line.ends_with('\r')) line.pop_back();
    return line;
  }
  void fill() {
    char buffer[4096];
    const auto count = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (count > 0) {
      waiting_.append(buffer, static_cast<std::size_t>(count));
    } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
      over_ = true;
    }
  }

  Signals& signals_;
  std::string waiting_;
  std::size_t searched_ = 0;  // no line ends before
  bool over_ = false;
};

}  // namespace

std::unique_ptr<LineSource> piped_lines(Signals& signals) {
  return std::make_unique<PipedLines>(signals);
}

}  // namespace afterglow
