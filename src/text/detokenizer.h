#pragma once

#include <memory>
#include <string>

#include "base/token.h"
#include "text/tokenizer.h"

struct tk_stream;

namespace afterglow {

/// Text from tokens as they come. Never gives a part of a character; all
/// outputs joined equal `Tokenizer::decode` of the same tokens. A push costs
/// time in proportion to its token's bytes, however long the text is.
/// Thread: one thread at a time. The tokenizer may go before it.
class Detokenizer {
 public:
  /// `skip_special` leaves special tokens out of the text.
  explicit Detokenizer(const Tokenizer& tokenizer, bool skip_special = true);

  /// The characters that this token completes; often empty.
  std::string push(Token token);

  /// What an unfinished character left, as U+FFFD; then a new text begins.
  std::string flush();

 private:
  struct Free {
    void operator()(tk_stream* stream) const;
  };
  std::unique_ptr<tk_stream, Free> stream_;
};

}  // namespace afterglow
