#include "cli/chat/chat_input.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace afterglow {
namespace {

using Kind = ChatInput::Kind;

void expect(const std::string& line, Kind kind, const std::string& text = "") {
  const ChatInput input = parse_chat_input(line);
  EXPECT_EQ(input.kind, kind) << line;
  EXPECT_EQ(input.text, text) << line;
}

TEST(ChatInputs, BlankLinesSayNothing) {
  for (const char* line : {"", " ", "\t", " \n\n ", "\r"}) {
    expect(line, Kind::kNothing);
  }
}

TEST(ChatInputs, MessagesStayAsTheyAre) {
  for (const char* line :
       {"hello",
        " indented:\n  code /reset\n",
        "q",
        "r",
        "h",
        "größer 日本 🎉",
        "1/2",
        "a\n/exit"}) {
    expect(line, Kind::kMessage, line);
  }
}

TEST(ChatInputs, CommandsAreWords) {
  expect("/reset", Kind::kReset);
  expect("  /help \t", Kind::kHelp);
  expect("/exit", Kind::kExit);
  for (const char* line : {"/resets", "/RESET", "/", "/etc/passwd", "/q"}) {
    const ChatInput input = parse_chat_input(line);
    EXPECT_EQ(input.kind, Kind::kWrong) << line;
    EXPECT_NE(input.text.find(line), std::string::npos) << input.text;
  }
}

TEST(ChatInputs, FilesMayHaveSpaces) {
  expect("/save a.safetensors", Kind::kSave, "a.safetensors");
  expect("/load \t my chat 1 ", Kind::kLoad, "my chat 1");
}

TEST(ChatInputs, ATildeIsTheHomeOfTheUser) {
  ASSERT_EQ(::setenv("HOME", "/home/me", 1), 0);
  expect("/save ~/a", Kind::kSave, "/home/me/a");
  expect("/save a~/b", Kind::kSave, "a~/b");
  expect("/load ~you/b", Kind::kLoad, "~you/b");
}

TEST(ChatInputs, WrongArgumentsAreNamed) {
  expect("/save", Kind::kWrong, "/save needs a file: /save FILE");
  expect("/load  ", Kind::kWrong, "/load needs a file: /load FILE");
  expect("/reset now", Kind::kWrong, "/reset takes nothing behind it");
}

TEST(ChatInputs, TwoSlashesSayOne) {
  expect("//etc/hosts is a file", Kind::kMessage, "/etc/hosts is a file");
}

}  // namespace
}  // namespace afterglow
