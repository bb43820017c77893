#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "server/choice.h"
#include "server/exchange.h"
#include "server/openai_response.h"
#include "server/openai_schema.h"
#include "text/tokenizer.h"

namespace afterglow {

/// Turns the events of one request's choices into its response: the pure part
/// between engine and transport. Choice i answers prompt i / n.
/// Thread: one thread at a time.
class Answer {
 public:
  /// The tokenizer must outlive it. Takes what it needs of the rest.
  Answer(
      const CompletionRequest& request,
      AnswerIdentity identity,
      const AnswerReading& reading,
      const std::vector<PreparedPrompt>& prompts,
      const Tokenizer& tokenizer
  );

  /// Adds to the output what an event of a choice brings.
  void on(std::size_t choice, Event&& event);
  /// Ends the answer with an error: a response of its own when nothing was
  /// sent yet, else an event in the stream.
  void fail(const ApiError& error);

  /// What is to be sent since the last call.
  Output take_output() { return std::exchange(output_, {}); }
  /// True once nothing more is wanted of a choice: the engine's request can be
  /// cancelled.
  bool stopped(std::size_t choice) const {
    return parts_[choice].choice.stopped();
  }
  bool done() const { return done_; }

  /// Why it failed; nothing when it did not.
  const std::optional<ApiError>& error() const { return error_; }

  // For the log. Requires: done(), no error().
  /// The first choice's.
  const std::string& finish_reason() const;
  /// Of all choices: of a prompt's reading, what its first choice tells;
  /// tokens generated are summed; of times the longest.
  Timings timings() const;

 private:
  struct Part {
    Choice choice;
    bool role_sent = false;
  };

  void on_event(Part& part, const Progress& progress);
  void on_event(Part& part, const TokenOut& token);
  void on_event(Part& part, const Finished& finished);
  void on_event(Part& part, const Failed& failed);
  std::size_t index_of(const Part& part) const;
  void begin_stream();
  void send_delta(Part& part);
  void send_end(Part& part);
  void end_stream();
  void end_whole();
  Usage usage() const;

  const AnswerIdentity identity_;
  const bool stream_;
  const bool include_usage_;
  const std::size_t choices_of_a_prompt_;
  std::size_t prompt_tokens_ = 0;
  std::vector<Part> parts_;

  Output output_;
  bool head_sent_ = false;
  bool done_ = false;
  std::optional<ApiError> error_;
};

}  // namespace afterglow
