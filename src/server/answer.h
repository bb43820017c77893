#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "engine/request.h"
#include "engine/text_assembler.h"
#include "server/exchange.h"
#include "server/logprobs.h"
#include "server/openai_response.h"
#include "server/openai_schema.h"
#include "text/tokenizer.h"

namespace afterglow {

/// Turns the events of one request into its response: the pure part between
/// engine and transport.
/// Thread: one thread at a time.
class Answer {
 public:
  /// The tokenizer must outlive it. Takes what it needs of the request.
  Answer(
      const CompletionRequest& request,
      AnswerIdentity identity,
      std::size_t prompt_tokens,
      const Tokenizer& tokenizer
  );

  /// Adds to output() what the event brings.
  void on(Event&& event);
  /// Ends the answer with an error: a response of its own when nothing was
  /// sent yet, else an event in the stream.
  void fail(const ApiError& error);

  /// What is to be sent since the last call.
  Output take_output() { return std::exchange(output_, {}); }
  /// True once a stop string was met: the engine's request can be cancelled.
  bool stopped() const { return text_.stopped(); }
  bool done() const { return done_; }

  // For the log, once done.
  const std::optional<Timings>& timings() const { return timings_; }
  const std::string& finish_reason() const { return finish_reason_; }

 private:
  void on_event(const Progress& progress);
  void on_event(const TokenOut& token);
  void on_event(const Finished& finished);
  void on_event(const Failed& failed);
  void begin_stream();
  void send_delta(const std::string& text);
  void end_stream(const Usage& usage);
  void end_whole(const Usage& usage);

  const AnswerIdentity identity_;
  const bool stream_;
  const bool include_usage_;
  const std::size_t prompt_tokens_;

  TextAssembler text_;
  std::optional<LogprobsWriter> logprobs_;
  std::string whole_text_;  // without stream
  std::size_t tokens_ = 0;

  Output output_;
  bool head_sent_ = false;
  bool role_sent_ = false;
  bool done_ = false;
  std::optional<Timings> timings_;
  std::string finish_reason_;
};

}  // namespace afterglow
