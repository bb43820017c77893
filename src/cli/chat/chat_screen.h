#pragma once

#include <string>

#include "afterglow/generate.h"
#include "cli/chat/conversation.h"

namespace afterglow {

/// What a chat shows: answers on standard output, all else on standard error.
/// Thread: one thread at a time.
class ChatScreen {
 public:
  ChatScreen();

  /// A piece of an answer. False: nobody reads it any more.
  bool answer(const std::string& text);
  void end_answer();
  /// A line aside, dim on a terminal.
  void note(const std::string& text);
  /// What a person asked for.
  void say(const std::string& text);
  void error(const std::string& text);

 private:
  /// As standard error may show it.
  std::string printable(const std::string& text) const;

  const bool answers_on_terminal_;
  const bool notes_on_terminal_;
  const bool colours_;
  bool in_line_ = false;  // an answer is, which no line break ended
};

/// Text that cannot steer a terminal: control characters other than line
/// feeds and tabs become U+FFFD. Requires: UTF-8 without cut characters.
std::string without_controls(const std::string& text);

/// "prompt 340 tokens (322 cached) at 210.3, answer 57 at 96.1 tokens-per-sec";
/// the prompt's speed is that of what was computed.
std::string answer_statistics(const StepOutput& last);

/// A few lines about what a conversation was, for one who comes back.
std::string conversation_summary(const Conversation& conversation);

}  // namespace afterglow
