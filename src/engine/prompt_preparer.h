#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/engine.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace afterglow {

/// Turns messages and texts into tokens, and finds where the system prompt
/// ends. Thread: safe from any thread.
class PromptPreparer {
 public:
  /// Without a template, messages are joined as mlx_lm joins them. A longer
  /// prompt than most_tokens is no prompt: it is not read to its end, and only
  /// that its tokens are more counts. All must outlive the preparer.
  PromptPreparer(
      const Tokenizer& tokenizer,
      const std::optional<ChatTemplate>& chat,
      const AnswerFormat& format,
      std::size_t most_tokens
  );

  /// See Engine::render_chat.
  Result<std::string> render(const ChatInput& chat) const;
  /// See Engine::prepare_chat.
  Result<PreparedPrompt> chat(const ChatInput& chat) const;
  /// See Engine::prepare_open_chat. What transformers calls
  /// continue_final_message.
  Result<PreparedPrompt> open_chat(
      std::string_view messages_json, std::string_view kwargs_json
  ) const;
  /// See Engine::prepare_rest_of_chat.
  Result<PreparedPrompt> rest_of_chat(
      std::string_view messages_json, std::string_view kwargs_json
  ) const;
  /// See Engine::prepare_text.
  Result<PreparedPrompt> text(std::string_view text) const;

 private:
  /// `messages` are the chat's.
  Result<std::string> render(
      const ChatInput& chat, const nlohmann::ordered_json& messages
  ) const;
  /// Whether the template says the same without the tools.
  bool leaves_tools_out(const ChatInput& chat, const std::string& rendered)
      const;
  /// What the answer to a rendered chat begins with.
  AnswerPart begins(const ChatInput& chat, std::string_view rendered) const;
  /// Adds the boundary of a system prompt that the messages begin with.
  void mark_system_prompt(
      const nlohmann::ordered_json& messages,
      std::string_view tools_json,
      std::string_view kwargs_json,
      PreparedPrompt& prepared
  ) const;
  /// The prompt's text up to the end of the last message's content.
  /// Requires: that content is text.
  Result<std::string> render_open(
      nlohmann::ordered_json messages, std::string_view kwargs_json
  ) const;
  Result<PreparedPrompt> encode_rendered(std::string_view text) const;

  const Tokenizer& tokenizer_;
  const std::optional<ChatTemplate>& chat_;
  const AnswerFormat& format_;
  const std::size_t most_tokens_;
};

}  // namespace afterglow
