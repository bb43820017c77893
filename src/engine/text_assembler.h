#pragma once

#include <string>
#include <vector>

#include "base/token.h"
#include "text/detokenizer.h"
#include "text/stop_matcher.h"
#include "text/tokenizer.h"

namespace afterglow {

/// Turns a request's tokens into text: whole characters only, ending before
/// the first stop string.
/// Thread: one thread at a time.
class TextAssembler {
 public:
  /// skip_special: leaves special tokens out of the text.
  /// Requires: no stop string is empty; the tokenizer outlives it.
  TextAssembler(
      const Tokenizer& tokenizer,
      std::vector<std::string> stops,
      bool skip_special = true
  );

  /// The text that is now certain; empty while a character is incomplete or
  /// could begin a stop string.
  std::string push(Token token);
  /// What was held back, at the end of the tokens.
  std::string finish();
  /// True once a stop string was met: cancel the request.
  bool stopped() const { return stopped_; }

 private:
  Detokenizer detokenizer_;
  StopMatcher matcher_;
  bool stopped_ = false;
};

}  // namespace afterglow
