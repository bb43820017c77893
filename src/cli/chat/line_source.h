#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cli/signals.h"

namespace afterglow {

/// What a user did at the prompt.
struct UserLine {
  enum class Kind : std::uint8_t {
    kLine,       // text
    kInterrupt,  // Ctrl-C
    kEnd,        // Ctrl-D, or the input's end
    kSignal,     // one that ends the program
  };
  Kind kind;
  std::string text;  // without the line's end
  int signal = 0;
};

/// Where lines come from.
/// Thread: one thread at a time.
class LineSource {
 public:
  virtual ~LineSource() = default;
  virtual UserLine read() = 0;
  /// A line that can be called back later.
  virtual void remember(const std::string& line) = 0;
};

/// Standard input as it is, line by line, for input that is no terminal.
std::unique_ptr<LineSource> piped_lines(Signals& signals);

/// Lines that a person edits at the terminal, with those of earlier chats to
/// call back. A pasted text may have several lines. The terminal is only
/// changed while a line is read. history_file: empty for none.
/// Requires: standard input, and standard output or error, are terminals;
/// the signals have SIGTSTP and SIGWINCH, too.
/// Source: editline(3).
std::unique_ptr<LineSource> edited_lines(
    Signals& signals, const std::string& history_file
);

}  // namespace afterglow
