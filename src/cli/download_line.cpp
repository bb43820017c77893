#include "cli/download_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "cli/human.h"

namespace afterglow {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kUsualColumns = 80;

std::size_t terminal_columns() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0;
  return known && size.ws_col > 0 ? size.ws_col : kUsualColumns;
}

}  // namespace

DownloadLine::DownloadLine(const std::string& name)
    : name_(name), terminal_(::isatty(STDERR_FILENO) == 1) {}

std::string DownloadLine::text(
    const std::string& name,
    const DownloadProgress& progress,
    std::uint64_t before,
    double seconds,
    std::size_t columns
) {
  std::string text = name + "  " +
                     std::to_string(100 * progress.done / progress.total) +
                     " % of " + human_bytes(progress.total);
  if (seconds >= 1 && progress.done > before) {
    const double bytes = static_cast<double>(progress.done - before);
    text +=
        "  " + human_bytes(static_cast<std::uint64_t>(bytes / seconds)) + "/s";
  }
  text += "  " + std::string(progress.file);
  return text.substr(0, columns - 1);
}

void DownloadLine::show(const DownloadProgress& progress) {
  if (progress.total == 0) return;
  if (!before_ && progress.done == progress.total) return;
  if (!before_) begin(progress);
  if (terminal_) {
    draw(progress);
    return;
  }
  const std::uint64_t tenths = 10 * progress.done / progress.total;
  if (tenths <= tenths_ || tenths == 10) return;
  tenths_ = tenths;
  std::fprintf(
      stderr, "%s: %d %%\n", name_.c_str(), static_cast<int>(10 * tenths)
  );
}

void DownloadLine::begin(const DownloadProgress& progress) {
  before_ = progress.done;
  total_ = progress.total;
  tenths_ = 10 * progress.done / progress.total;
  start_ = Clock::now();
  if (terminal_) return;
  std::fprintf(
      stderr,
      "%s: downloading %s%s\n",
      name_.c_str(),
      human_bytes(progress.total - progress.done).c_str(),
      progress.done > 0 ? ", the rest is here" : ""
  );
}

void DownloadLine::draw(const DownloadProgress& progress) {
  const auto now = Clock::now();
  if (now - drawn_ < 100ms) return;
  drawn_ = now;
  const std::chrono::duration<double> passed = now - start_;
  std::fprintf(
      stderr,
      "\r%s\033[K",
      text(name_, progress, *before_, passed.count(), terminal_columns())
          .c_str()
  );
  std::fflush(stderr);
}

void DownloadLine::finish(bool complete) {
  if (!before_) return;
  if (terminal_) std::fprintf(stderr, "\r\033[K");
  if (complete) {
    std::fprintf(
        stderr, "%s: %s are here\n", name_.c_str(), human_bytes(total_).c_str()
    );
  }
  before_.reset();
}

}  // namespace afterglow
