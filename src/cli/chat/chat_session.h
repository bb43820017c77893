#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "afterglow/cache_history.h"
#include "afterglow/generate.h"
#include "cli/chat/conversation.h"

namespace afterglow {

/// A conversation with a model, and the KV of it.
/// Thread: one thread at a time.
class ChatSession {
 public:
  /// options: of each answer; cache and cancelling are set here.
  ChatSession(
      const Model& model,
      GenerateOptions options,
      std::optional<std::string> system_prompt
  );

  const Model& model() const { return model_; }
  const Conversation& conversation() const { return conversation_; }

  /// Answers a message in the conversation, which stays as it is until keep.
  /// Throws: kExhausted when the context has no room for the message and an
  /// answer; what stream_generate throws.
  TextStream ask(
      const std::string& text,
      std::stop_token cancel,
      std::function<void(std::size_t done, std::size_t total)> progress
  ) const;
  /// Takes message and answer into the conversation. last: of the stream.
  void keep(
      const std::string& text, const std::string& answer, const StepOutput& last
  );
  /// Forgets all but the system prompt.
  void reset();

  /// Goes on with another conversation, and its KV if that is at hand.
  /// Throws: kInvalidArgument for a history of another model; then all stays
  /// as it was.
  void take_up(Conversation conversation, std::optional<CacheHistory> history);
  /// The KV of the conversation; read by the model if need be, which `cancel`
  /// ends, and `waiting` is called meanwhile.
  /// Throws: kInvalidArgument when nothing was said; kCancelled.
  CacheHistory history(
      std::stop_token cancel, const std::function<void()>& waiting
  );

 private:
  Prompt prompt_for(const std::string& text) const;

  Model model_;
  GenerateOptions options_;
  Conversation conversation_;
  std::optional<CacheHistory> history_;
};

}  // namespace afterglow
