#include "cli/chat/chat_screen.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace afterglow {
namespace {

constexpr std::size_t kSummaryBytes = 160;  // of a message
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool colours_wanted() {
  const char* no = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return (no == nullptr || *no == 0) && terminal != nullptr &&
         std::strcmp(terminal, "dumb") != 0;
}

void write(std::FILE* file, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), file);
}

/// In one line, shortened between characters.
std::string shortened(const std::string& text) {
  std::string line;
  for (const char c : without_controls(text)) {
    line += c == '\n' || c == '\t' ? ' ' : c;
  }
  if (line.size() <= kSummaryBytes) return line;
  std::size_t end = kSummaryBytes;
  while (end > 0 && (line[end] & 0xC0) == 0x80) --end;
  return line.substr(0, end) + "...";
}

}  // namespace

ChatScreen::ChatScreen()
    : answers_on_terminal_(::isatty(STDOUT_FILENO) == 1),
      notes_on_terminal_(::isatty(STDERR_FILENO) == 1),
      colours_(notes_on_terminal_ && colours_wanted()) {}

bool ChatScreen::answer(const std::string& text) {
  if (text.empty()) return true;
  in_line_ = text.back() != '\n';
  write(stdout, answers_on_terminal_ ? without_controls(text) : text);
  return std::fflush(stdout) == 0;
}

void ChatScreen::end_answer() {
  // In a pipe each answer has one line break more than its text.
  if (in_line_ || !answers_on_terminal_) write(stdout, "\n");
  std::fflush(stdout);
  in_line_ = false;
}

void ChatScreen::note(const std::string& text) {
  const std::string shown = printable(text);
  write(stderr, (colours_ ? "\033[2m" + shown + "\033[0m" : shown) + "\n");
}

void ChatScreen::say(const std::string& text) {
  write(stderr, printable(text) + "\n");
}

void ChatScreen::error(const std::string& text) {
  if (in_line_) end_answer();
  say("afterglow: " + text);
}

std::string ChatScreen::printable(const std::string& text) const {
  return notes_on_terminal_ ? without_controls(text) : text;
}

std::string without_controls(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto next =
        static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (c == 0xC2 && next >= 0x80 && next < 0xA0) {  // U+0080 to U+009F
      result += kReplacement;
      ++i;
    } else if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7F) {
      result += kReplacement;
    } else {
      result += text[i];
    }
  }
  return result;
}

std::string answer_statistics(const StepOutput& last) {
  char text[200];
  std::snprintf(
      text,
      sizeof text,
      "prompt %zu tokens (%zu cached) at %.1f, answer %zu at %.1f "
      "tokens-per-sec",
      last.prompt_tokens,
      last.cached_tokens,
      last.prompt_tps,
      last.generation_tokens,
      last.generation_tps
  );
  return text;
}

std::string conversation_summary(const Conversation& conversation) {
  std::string text;
  if (conversation.system_prompt) {
    text += "system: " + shortened(*conversation.system_prompt) + "\n";
  }
  const std::size_t count = conversation.messages.size();
  if (count > 2) {
    text += "(" + std::to_string(count - 2) + " earlier messages)\n";
  }
  for (std::size_t i = count - (count < 2 ? count : 2); i < count; ++i) {
    const Message& message = conversation.messages[i];
    text += message.role + ": " + shortened(message.content) + "\n";
  }
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace afterglow
