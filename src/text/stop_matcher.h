#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace afterglow {

/// Ends a streamed text before the first stop string, wherever pieces are
/// cut. Holds back only what may be the start of a stop string; what it gives
/// out is cut between characters when the pieces are. Of several stop strings
/// the one that ends first counts, of those the longest, so that the result
/// does not depend on how the text is cut.
/// Thread: one thread at a time.
class StopMatcher {
 public:
  /// Without stop strings text passes unchanged. An empty one never matches.
  explicit StopMatcher(std::vector<std::string> stops);

  /// The text that is now certain to come before any stop string. Empty once
  /// stopped.
  std::string push(std::string_view text);

  /// What was held back, when no more text comes; empty once stopped.
  std::string flush();

  /// Bytes of the last push up to the stop string's end, or all of them.
  std::size_t consumed() const { return consumed_; }

  bool stopped() const { return matched_.has_value(); }
  /// Which stop string was met, by its place in the list.
  std::optional<std::size_t> matched() const { return matched_; }

 private:
  /// A stop string with its failure function (Knuth, Morris and Pratt).
  struct Pattern {
    std::string text;
    std::vector<std::size_t> fail;
    std::size_t state = 0;  // bytes of text that the input ends with

    explicit Pattern(std::string stop);
    void advance(char byte);
  };

  std::vector<Pattern> patterns_;
  std::string held_;
  std::optional<std::size_t> matched_;
  std::size_t consumed_ = 0;
};

}  // namespace afterglow
