#include "cli/chat/chat_input.h"

#include <cstdlib>
#include <string_view>

namespace afterglow {
namespace {

using Kind = ChatInput::Kind;

constexpr std::string_view kBlanks = " \t\r\n\v\f";

struct Command {
  std::string_view name;
  Kind kind;
  bool takes_file;
};

constexpr Command kCommands[] = {
    {"/reset", Kind::kReset, false},
    {"/save", Kind::kSave, true},
    {"/load", Kind::kLoad, true},
    {"/help", Kind::kHelp, false},
    {"/exit", Kind::kExit, false},
};

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return std::string(
      text.substr(first, text.find_last_not_of(kBlanks) - first + 1)
  );
}

/// As a shell would for a file that a person names.
std::string with_home(const std::string& file) {
  const char* home = std::getenv("HOME");
  const bool at_home =
      home != nullptr && (file == "~" || file.starts_with("~/"));
  return at_home ? home + file.substr(1) : file;
}

ChatInput wrong(const std::string& text) {
  return {Kind::kWrong, text};
}

ChatInput apply(const Command& command, const std::string& argument) {
  const std::string name(command.name);
  if (command.takes_file && argument.empty()) {
    return wrong(name + " needs a file: " + name + " FILE");
  }
  if (!command.takes_file && !argument.empty()) {
    return wrong(name + " takes nothing behind it");
  }
  return {command.kind, with_home(argument)};
}

}  // namespace

ChatInput parse_chat_input(const std::string& line) {
  const std::string text = trimmed(line);
  if (text.empty()) return {Kind::kNothing, {}};
  if (text.starts_with("//")) return {Kind::kMessage, text.substr(1)};
  if (text[0] != '/') return {Kind::kMessage, line};
  const auto end = text.find_first_of(kBlanks);
  const std::string name = text.substr(0, end);
  for (const Command& command : kCommands) {
    if (command.name != name) continue;
    return apply(command, end == text.npos ? "" : trimmed(text.substr(end)));
  }
  return wrong(
      "there is no command " + name +
      "; /help lists them, and //... says something that begins with /"
  );
}

const char* chat_help() {
  return "/reset       begin a new conversation\n"
         "/save FILE   write the conversation and its KV cache to a file\n"
         "/load FILE   take up the conversation of such a file\n"
         "/help        this\n"
         "/exit        end, as Ctrl-D does\n"
         "//...        say something that begins with /\n"
         "Alt-Enter begins a new line of the message; Ctrl-C cuts an answer,\n"
         "or clears the line.";
}

}  // namespace afterglow
