#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "cli/chat/chat_screen.h"
#include "cli/chat/chat_session.h"
#include "cli/chat/last_chat.h"
#include "cli/chat/line_source.h"
#include "cli/signals.h"

namespace afterglow {

/// Reads what the user says, and has it answered, until the end.
/// Thread: one thread at a time.
class ChatLoop {
 public:
  /// last: null for none. statistics: a line about each answer.
  ChatLoop(
      ChatSession& session,
      LineSource& lines,
      ChatScreen& screen,
      Signals& signals,
      LastChat* last,
      bool statistics
  )
      : session_(session),
        lines_(lines),
        screen_(screen),
        signals_(signals),
        last_(last),
        statistics_(statistics) {}

  /// The exit status: 0, 1 when nobody reads the answers, or as for a program
  /// that a signal ended.
  int run();

  /// /load. Throws: as load_chat and ChatSession::take_up.
  void load(const std::string& file);
  /// Takes up the last chat, or says that there is none.
  /// Throws: Exception where it cannot be read. Requires: last is not null.
  void take_up_last();

 private:
  void act(const std::string& line);
  void answer(const std::string& text);
  /// The stream's text until its end; last: its last output.
  std::string print(TextStream& stream, StepOutput& last);
  void save(const std::string& file);
  void explain_end(const StepOutput& last);
  void keep_last();
  /// Looks for signals while the model works.
  void check_signals();

  ChatSession& session_;
  LineSource& lines_;
  ChatScreen& screen_;
  Signals& signals_;
  LastChat* const last_;
  const bool statistics_;
  std::stop_source cut_;       // of what the model does now
  std::optional<int> status_;  // set: it ends
};

}  // namespace afterglow
