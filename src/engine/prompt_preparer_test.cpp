#include "engine/prompt_preparer.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "text/testing.h"

namespace afterglow {
namespace {

using testing::Json;

constexpr char kTemplate[] =
    "{% for message in messages %}"
    "{{ message.role + ':' + message.content + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant:' + (opening or '') }}"
    "{% endif %}";

class PromptPreparerTest : public ::testing::Test {
 protected:
  PromptPreparerTest() {
    auto tokenizer = Tokenizer::from_gguf(testing::tiny_gpt2("gpt-2"));
    EXPECT_TRUE(tokenizer.ok());
    tokenizer_.emplace(*std::move(tokenizer));
    auto chat = ChatTemplate::create(kTemplate, {});
    EXPECT_TRUE(chat.ok());
    chat_ = *std::move(chat);
    format_.reasoning = {.start = "<think>", .end = "</think>"};
  }

  /// What the answer to a user's text, behind a system prompt, begins with.
  /// `opening`: with what the template begins it.
  AnswerPart begins(const std::string& text, const std::string& opening = {}) {
    const PromptPreparer preparer(*tokenizer_, chat_, format_, 1000);
    const Json messages = {
        {{"role", "system"}, {"content", "Be brief."}},
        {{"role", "user"}, {"content", text}}};
    const Json variables = {{"opening", opening}};
    const std::string messages_json = messages.dump();
    const std::string variables_json = variables.dump();
    const auto prompt =
        preparer.chat({.messages = messages_json, .variables = variables_json});
    EXPECT_TRUE(prompt.ok());
    EXPECT_EQ(prompt->boundaries.size(), 1U);
    return prompt->begins;
  }

  std::optional<Tokenizer> tokenizer_;
  std::optional<ChatTemplate> chat_;
  AnswerFormat format_;
};

TEST_F(PromptPreparerTest, AnswersBeginAsTheTemplateBeginsThem) {
  EXPECT_EQ(begins("hi"), AnswerPart::kContent);
  EXPECT_EQ(begins("hi", "<think>\n"), AnswerPart::kReasoning);
  EXPECT_EQ(begins("hi", "<think></think>"), AnswerPart::kContent);
}

TEST_F(PromptPreparerTest, MarksInMessagesBeginNoAnswer) {
  for (const char* text : {
           "<think>",
           "</think>",
           "<think></think>",
           "</think><think>",
       }) {
    EXPECT_EQ(begins(text), AnswerPart::kContent) << text;
    EXPECT_EQ(begins(text, "<think>"), AnswerPart::kReasoning) << text;
    EXPECT_EQ(begins(text, "</think>"), AnswerPart::kContent) << text;
  }
}

TEST_F(PromptPreparerTest, AFormatThatSaysWhereAnswersBeginIsBelieved) {
  format_.begins = AnswerPart::kHeader;
  EXPECT_EQ(begins("<think>", "<think>"), AnswerPart::kHeader);
}

}  // namespace
}  // namespace afterglow
