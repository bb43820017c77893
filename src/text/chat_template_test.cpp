#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "text/testing.h"

namespace afterglow {
namespace {

using testing::golden;
using testing::Json;

ChatTemplate compiled(std::string_view source) {
  auto result = ChatTemplate::create(
      source, {.bos = "<s>", .eos = "</s>", .unk = "<unk>", .pad = "<pad>"}
  );
  CHECK(result.ok(), result.error().message);
  return *std::move(result);
}

std::string one_user = R"([{"role": "user", "content": "Hello"}])";

TEST(ChatTemplate, RendersWhatTransformersRenders) {
  const Json all = golden("templates.json");
  const std::string tools = all["tools"].dump();
  int rendered = 0;
  int refused = 0;
  for (const auto& entry : all["cases"]) {
    const auto chat = compiled(entry["source"].get<std::string>());
    for (const auto& run : entry["runs"]) {
      const std::string conversation = run["conversation"];
      SCOPED_TRACE(
          entry["name"].get<std::string>() + " / " + conversation + " / " +
          run["kwargs"].dump()
      );
      const auto text = chat.render(
          all["conversations"][conversation].dump(),
          run["tools"].get<bool>() ? tools : "",
          run["add_generation_prompt"],
          run["kwargs"].dump()
      );
      if (run.contains("text")) {
        const std::string wanted = run["text"];
        EXPECT_EQ(text.ok() ? *text : text.error().message, wanted);
        ++rendered;
      } else {
        ++refused;
        if (text.ok()) {
          ADD_FAILURE() << "rendered: " << *text;
          continue;
        }
        EXPECT_EQ(text.error().code, Code::kInvalidArgument);
        EXPECT_NE(
            text.error().message.find(run["error"].get<std::string>()),
            std::string::npos
        ) << text.error().message;
      }
    }
  }
  EXPECT_GT(rendered, 200);
  EXPECT_GT(refused, 10);
}

TEST(ChatTemplate, FailuresNameLineAndReason) {
  const Json all = golden("templates.json");
  ASSERT_EQ(all["broken"].size(), 7U);
  for (const auto& entry : all["broken"]) {
    const std::string name = entry["name"];
    auto chat = ChatTemplate::create(entry["source"].get<std::string>(), {});
    auto text = chat.ok() ? chat->render(one_user, "", false, "")
                          : Result<std::string>(chat.error());
    ASSERT_FALSE(text.ok()) << name;
    EXPECT_EQ(text.error().code, Code::kInvalidArgument) << name;
    EXPECT_NE(
        text.error().message.find(entry["words"].get<std::string>()),
        std::string::npos
    ) << name
      << ": " << text.error().message;
  }
}

TEST(ChatTemplate, WrongShapesOfInputAreNamed) {
  const auto chat = compiled("{{ messages | length }}");
  struct Case {
    std::string messages, tools, kwargs, words;
  };
  const std::vector<Case> cases = {
      {"", "", "", "messages"},
      {"{}", "", "", "messages: not a JSON array"},
      {"[1]", "", "", "messages[0]"},
      {"[{}", "", "", "messages"},
      {"[]", "{}", "", "tools: not a JSON array"},
      {"[]", "[", "", "tools"},
      {"[]", "", "[]", "template arguments: not a JSON object"},
      {"[{\"a\": \"\xff\"}]", "", "", "messages"},
  };
  for (const auto& [messages, tools, kwargs, words] : cases) {
    const auto text = chat.render(messages, tools, false, kwargs);
    ASSERT_FALSE(text.ok()) << messages;
    EXPECT_EQ(text.error().code, Code::kInvalidArgument);
    EXPECT_NE(text.error().message.find(words), std::string::npos)
        << text.error().message;
  }
}

TEST(ChatTemplate, DeepJsonIsAnErrorAndNoCrash) {
  const auto chat = compiled("{{ messages | tojson }}");
  const std::string deep =
      "[{\"role\": \"user\", \"content\": " + std::string(100000, '[') +
      std::string(100000, ']') + "}]";
  EXPECT_FALSE(chat.render(deep, "", false, "").ok());
}

TEST(ChatTemplate, EndlessRecursionIsAnErrorAndNoCrash) {
  const auto chat =
      compiled("{% macro f(x) %}{{ f(x + 1) }}{% endmacro %}{{ f(0) }}");
  EXPECT_FALSE(chat.render(one_user, "", false, "").ok());
}

TEST(ChatTemplate, KwargsWinOverTokensAndFlags) {
  const auto chat = compiled("{{ bos_token }}{{ add_generation_prompt }}");
  const auto text = chat.render(
      one_user, "", false, R"({"bos_token": "B", "add_generation_prompt": 7})"
  );
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(*text, "B7");
}

TEST(ChatTemplate, StrftimeNowIsLocalTime) {
  const auto chat = compiled("{{ strftime_now('%Y-%m-%d %B %-d %%') }}");
  const auto now = [] {
    const std::time_t seconds = std::time(nullptr);
    std::tm parts{};
    localtime_r(&seconds, &parts);
    char text[64];
    std::strftime(text, sizeof text, "%Y-%m-%d %B %-d %%", &parts);
    return std::string(text);
  };
  // The day may change between the calls, but only once.
  const std::string before = now();
  const auto text = chat.render(one_user, "", false, "");
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_TRUE(*text == before || *text == now()) << *text;
}

TEST(ChatTemplate, ManyThreadsRenderTheSame) {
  const auto chat = compiled("{% for m in messages %}{{ m }}{% endfor %}");
  const std::string wanted = *chat.render(one_user, "", false, "");
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (auto& count : wrong) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const auto text = chat.render(one_user, "", false, "");
        count += !text.ok() || *text != wanted;
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(ChatTemplate, FoundInAConfigByItsName) {
  const std::string named =
      R"({"chat_template": [{"name": "default", "template": "D"},
                            {"name": "tool_use", "template": "T"}]})";
  EXPECT_EQ(**chat_template_in_config(R"({"chat_template": "A"})"), "A");
  EXPECT_EQ(**chat_template_in_config(named), "D");
  EXPECT_EQ(**chat_template_in_config(named, "tool_use"), "T");
  EXPECT_FALSE(chat_template_in_config(named, "rag")->has_value());
  EXPECT_FALSE(chat_template_in_config("{}")->has_value());
  EXPECT_FALSE(chat_template_in_config("{").ok());
}

}  // namespace
}  // namespace afterglow
