#include "cli/chat/chat_screen.h"

#include <gtest/gtest.h>

namespace afterglow {
namespace {

constexpr char kBad[] = "\xEF\xBF\xBD";

TEST(WithoutControls, LeavesTextAndLines) {
  const std::string text = "größer\t日本 🎉\n\n£é\u00a0ÿ";
  EXPECT_EQ(without_controls(text), text);
}

TEST(WithoutControls, TakesAwayWhatSteersATerminal) {
  const std::string bad = kBad;
  EXPECT_EQ(without_controls("\033]0;title\007"), bad + "]0;title" + bad);
  EXPECT_EQ(without_controls("a\rb\x7f"), "a" + bad + "b" + bad);
  EXPECT_EQ(without_controls("\u009b2J\u0080\u009f"), bad + "2J" + bad + bad);
}

TEST(ConversationSummaries, ShowTheLastTwoMessages) {
  Conversation one{"m", "Be\nbrief.", {}};
  EXPECT_EQ(conversation_summary(one), "system: Be brief.");
  one.messages = {{"user", "a"}, {"assistant", "b"}};
  EXPECT_EQ(
      conversation_summary(one), "system: Be brief.\nuser: a\nassistant: b"
  );
  one.messages.push_back({"user", "c\033[2J"});
  one.messages.push_back({"assistant", std::string(159, 'x') + "ü"});
  EXPECT_EQ(
      conversation_summary(one),
      "system: Be brief.\n(2 earlier messages)\nuser: c" + std::string(kBad) +
          "[2J\nassistant: " + std::string(159, 'x') + "..."
  );
  EXPECT_EQ(conversation_summary({}), "");
}

TEST(AnswerStatistics, TellWhatWasComputed) {
  StepOutput last;
  last.prompt_tokens = 340;
  last.cached_tokens = 322;
  last.prompt_tps = 210.26;
  last.generation_tokens = 57;
  last.generation_tps = 96;
  EXPECT_EQ(
      answer_statistics(last),
      "prompt 340 tokens (322 cached) at 210.3, answer 57 at 96.0 "
      "tokens-per-sec"
  );
}

}  // namespace
}  // namespace afterglow
