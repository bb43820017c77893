#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>

#include "engine/request.h"
#include "text/tokenizer.h"

namespace afterglow {

/// Collects the logprobs of tokens in OpenAI's shape: for chat a list of
/// {token, logprob, bytes, top_logprobs}; for completions parallel lists
/// tokens, token_logprobs, top_logprobs and text_offset, where tokens that are
/// no UTF-8 are named "bytes:\xf0\x9f".
/// Thread: one thread at a time.
class LogprobsWriter {
 public:
  using json = nlohmann::ordered_json;

  /// The tokenizer must outlive it. top: whether alternatives are listed.
  LogprobsWriter(const Tokenizer& tokenizer, bool chat, bool top);

  void add(const TokenOut& token);
  /// All since the last call as the `logprobs` member; null when none.
  json take();

 private:
  json chat_entry(Token token, float logprob) const;
  json text_top(const TokenOut& token) const;
  void clear();

  const Tokenizer& tokenizer_;
  const bool chat_;
  const bool top_;
  bool empty_ = true;
  json pending_;
  std::size_t text_offset_ = 0;  // characters, for completions
};

}  // namespace afterglow
