#include "api/progress_bar.h"

#include <unistd.h>

#include <cstdio>

namespace afterglow {
namespace {

constexpr std::size_t kWidth = 30;
constexpr std::size_t kLongPrompt = 256;  // tokens

}  // namespace

ProgressBar::ProgressBar() : terminal_(::isatty(STDERR_FILENO) == 1) {}

std::string ProgressBar::draw(std::size_t done, std::size_t total) {
  const std::size_t filled = total == 0 ? kWidth : kWidth * done / total;
  return "[" + std::string(filled, '#') + std::string(kWidth - filled, '.') +
         "] " + std::to_string(done) + "/" + std::to_string(total);
}

void ProgressBar::show(std::size_t done, std::size_t total) {
  if (!terminal_ || total < kLongPrompt) return;
  shown_ = true;
  std::fprintf(stderr, "\rReading the prompt %s", draw(done, total).c_str());
  std::fflush(stderr);
}

void ProgressBar::clear() {
  if (!shown_) return;
  shown_ = false;
  std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
}

}  // namespace afterglow
