#include "text/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace afterglow {

StopMatcher::Pattern::Pattern(std::string stop)
    : text(std::move(stop)), fail(text.size(), 0) {
  for (std::size_t i = 1, length = 0; i < text.size(); ++i) {
    while (length > 0 && text[i] != text[length]) {
      length = fail[length - 1];
    }
    if (text[i] == text[length]) {
      ++length;
    }
    fail[i] = length;
  }
}

void StopMatcher::Pattern::advance(char byte) {
  if (text.empty()) {
    return;
  }
  while (state > 0 && text[state] != byte) {
    state = fail[state - 1];
  }
  if (text[state] == byte) {
    ++state;
  }
}

StopMatcher::StopMatcher(std::vector<std::string> stops) {
  for (auto& stop : stops) {
    patterns_.emplace_back(std::move(stop));
  }
}

std::string StopMatcher::push(std::string_view text) {
  consumed_ = 0;
  if (stopped()) {
    return {};
  }
  for (const char byte : text) {
    ++consumed_;
    held_.push_back(byte);
    std::size_t longest = 0;
    for (std::size_t i = 0; i < patterns_.size(); ++i) {
      auto& pattern = patterns_[i];
      pattern.advance(byte);
      if (pattern.state == pattern.text.size() && pattern.state > longest) {
        longest = pattern.state;
        matched_ = i;
      }
    }
    if (stopped()) {
      held_.resize(held_.size() - longest);
      return std::exchange(held_, {});
    }
  }
  std::size_t keep = 0;
  for (const auto& pattern : patterns_) {
    keep = std::max(keep, pattern.state);
  }
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, out.size());
  return out;
}

std::string StopMatcher::flush() {
  for (auto& pattern : patterns_) {
    pattern.state = 0;
  }
  return std::exchange(held_, {});
}

}  // namespace afterglow
