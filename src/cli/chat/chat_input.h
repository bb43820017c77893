#pragma once

#include <cstdint>
#include <string>

namespace afterglow {

/// What a line of the user means.
struct ChatInput {
  enum class Kind : std::uint8_t {
    kNothing,  // blank
    kMessage,  // text: what to say
    kReset,
    kSave,  // text: the file
    kLoad,  // text: the file
    kHelp,
    kExit,
    kWrong,  // text: what is wrong
  };
  Kind kind;
  std::string text;
};

/// A line that begins with one '/' is a command; what begins with two is said
/// with one. All else is said as it is, but for a line that is all blank.
ChatInput parse_chat_input(const std::string& line);

/// What /help shows: a line for each command.
const char* chat_help();

}  // namespace afterglow
