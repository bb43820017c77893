#include "cli/chat_template_flag.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace afterglow {
namespace {

namespace fs = std::filesystem;

const std::string kTemplate = "{{ messages[0].content }}\n";

class ChatTemplateFlag : public testing::Test {
 protected:
  ChatTemplateFlag() {
    std::string pattern = (fs::temp_directory_path() / "chat-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~ChatTemplateFlag() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) {
    const fs::path path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  std::string missing(const std::string& name) const {
    return (folder_ / name).string();
  }
  fs::path folder() const { return folder_; }

 private:
  fs::path folder_;
};

void expect_refused(const std::string& value, const std::string& why) {
  const auto read = read_chat_template(value);
  ASSERT_FALSE(read.ok()) << value;
  EXPECT_NE(read.error().message.find(why), std::string::npos)
      << read.error().message;
}

TEST_F(ChatTemplateFlag, TextIsTakenAsItIs) {
  for (const std::string& text :
       {std::string(), kTemplate, kTemplate + ".jinja"}) {
    EXPECT_EQ(*read_chat_template(text), text);
  }
}

TEST_F(ChatTemplateFlag, AFileOfTheRightNameIsRead) {
  EXPECT_EQ(*read_chat_template(file("messages.jinja", kTemplate)), kTemplate);
}

TEST_F(ChatTemplateFlag, AMissingFileIsAnError) {
  expect_refused(missing("none.jinja"), "No such file or directory");
  // As one reads it where it is not: not as a template of a few words.
  expect_refused("messages.jinja", "cannot read messages.jinja");
}

TEST_F(ChatTemplateFlag, AFolderCannotBeRead) {
  fs::create_directory(folder() / "x.jinja");
  expect_refused(missing("x.jinja"), "cannot read");
}

TEST_F(ChatTemplateFlag, AFileWithoutMessagesIsNoTemplate) {
  expect_refused(file("a.jinja", "{{ message }}"), "never uses 'messages'");
  expect_refused(file("b.jinja", "messages"), "never uses 'messages'");
}

TEST_F(ChatTemplateFlag, AFileOfAnotherNameIsToldHowToBePassed) {
  expect_refused(file("template.txt", kTemplate), "\"$(cat FILE)\"");
}

TEST_F(ChatTemplateFlag, TextThatIgnoresTheMessagesIsRefused) {
  expect_refused("{{ content }}", "never uses 'messages'");
  expect_refused("chatml", "'chatml' is no chat template");
  expect_refused(std::string(500, 'x'), std::string(60, 'x') + "...'");
}

}  // namespace
}  // namespace afterglow
