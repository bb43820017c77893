#include "text/answer_splitter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "text/testing.h"

namespace afterglow {
namespace {

using testing::golden;
using testing::Json;
using Kind = AnswerEvent::Kind;
using Events = std::vector<AnswerEvent>;

AnswerPart part_of(const std::string& name) {
  return name == "reasoning" ? AnswerPart::kReasoning
         : name == "header"  ? AnswerPart::kHeader
                             : AnswerPart::kContent;
}

/// Appends events, neighbouring texts of one kind joined.
void join(Events& all, Events more) {
  for (auto& event : more) {
    const bool text =
        event.kind == Kind::kContent || event.kind == Kind::kReasoning;
    if (text) {
      EXPECT_FALSE(event.text.empty());
    }
    if (text && !all.empty() && all.back().kind == event.kind) {
      all.back().text += event.text;
    } else {
      all.push_back(std::move(event));
    }
  }
}

std::size_t count_calls(const Events& events) {
  std::size_t count = 0;
  for (const auto& event : events) count += event.calls.size();
  return count;
}

Events play(
    const AnswerFormat& format,
    AnswerPart begins,
    const std::vector<std::string>& pieces
) {
  static const auto schemas =
      ToolSchemas::parse(golden("tool_calls.json")["tools"].dump());
  AnswerSplitter splitter(format, *schemas, begins);
  Events events;
  for (const auto& piece : pieces) {
    join(events, splitter.push(piece));
  }
  join(events, splitter.finish());
  return events;
}

std::vector<std::string> cut(const std::string& text, std::mt19937& random) {
  std::vector<std::string> pieces;
  const std::size_t most = 1 + random() % 20;
  for (std::size_t at = 0; at < text.size();) {
    const auto size = random() % (most + 1);
    pieces.push_back(text.substr(at, size));
    at += size;
  }
  return pieces;
}

HasToken vocabulary(const Json& tokens) {
  return [tokens](std::string_view token) {
    return std::ranges::find(tokens, Json(token)) != tokens.end();
  };
}

/// The format that an entry of the golden answers was made with.
AnswerFormat format_of(const Json& entry) {
  AnswerFormat format;
  if (entry["further"] == "xtml") {
    const Json tokens = {"<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>"};
    return *infer_answer_format("", vocabulary(tokens), "");
  }
  if (entry["further"] == "muse") {
    return *infer_answer_format("", vocabulary(Json::array()), "muse_spark");
  }
  if (!entry["reasoning_marks"].is_null()) {
    const auto& marks = entry["reasoning_marks"];
    format.reasoning = {marks[0], marks[1]};
  }
  if (!entry["format"].is_null()) {
    format.tool_calls =
        find_tool_call_format(entry["format"].get<std::string>());
  }
  return format;
}

struct Said {
  std::string content, reasoning;
  Json results = Json::array();
};

Said said_in(const Events& events) {
  Said said;
  for (const auto& event : events) {
    if (event.kind == Kind::kContent) {
      said.content += event.text;
    } else if (event.kind == Kind::kReasoning) {
      said.reasoning += event.text;
    } else if (event.kind == Kind::kToolCallsFailed) {
      EXPECT_NE(event.error, "");
      said.results.push_back("error");
    } else if (event.kind == Kind::kToolCalls) {
      said.results.push_back(Json::array());
      for (const auto& call : event.calls) {
        said.results.back().push_back(
            {{"id", call.id},
             {"name", call.name},
             {"arguments", call.arguments}}
        );
      }
    }
  }
  return said;
}

TEST(AnswerSplitter, TakesAnswersApartAsMlxLmsServerDoes) {
  const Json all = golden("tool_calls.json");
  for (const auto& entry : all["answers"]) {
    const std::string text = entry["text"];
    const auto played =
        play(format_of(entry), part_of(entry["begins"]), {text});
    const auto said = said_in(played);
    EXPECT_EQ(said.content, entry["content"].get<std::string>()) << text;
    EXPECT_EQ(said.reasoning, entry["reasoning"].get<std::string>()) << text;
    Json wanted = Json::array();
    std::size_t calls = 0;
    for (const auto& result : entry["results"]) {
      const bool good = result.contains("calls");
      wanted.push_back(good ? result["calls"] : Json("error"));
      calls += good ? result["calls"].size() : 0;
    }
    EXPECT_EQ(said.results, wanted) << text;
    EXPECT_EQ(count_calls(played), calls) << text;
  }
  EXPECT_GE(all["answers"].size(), 20U);
}

TEST(AnswerSplitter, EventsDoNotDependOnHowTheAnswerIsCut) {
  constexpr unsigned kSeed = 11;
  std::mt19937 random(kSeed);
  const Json all = golden("tool_calls.json");
  for (const auto& entry : all["answers"]) {
    const std::string text = entry["text"];
    const auto format = format_of(entry);
    const auto begins = part_of(entry["begins"]);
    const auto whole = play(format, begins, {text});
    for (int round = 0; round < 20; ++round) {
      const auto pieces = cut(text, random);
      EXPECT_EQ(play(format, begins, pieces), whole)
          << "seed " << kSeed << " round " << round << ": " << text;
    }
  }
}

TEST(AnswerSplitter, AnswersMadeOfPartsOfMarksAreCutAlike) {
  constexpr unsigned kSeed = 12;
  std::mt19937 random(kSeed);
  AnswerFormat format;
  format.reasoning = {"<think>", "</think>"};
  format.tool_calls = find_tool_call_format("glm47");
  const std::vector<std::string> parts = {
      "<think>",
      "</think>",
      "<tool_call>",
      "</tool_call>",
      "<",
      "</",
      "<t",
      "<think",
      "f",
      "x ",
      "<tool_",
      "</tool_call",
      ">",
      "\u00e9",
      "f s=1"};
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (unsigned i = 0; i < 2 + random() % 12; ++i) {
      text += parts[random() % parts.size()];
    }
    const auto begins =
        random() % 2 ? AnswerPart::kContent : AnswerPart::kReasoning;
    const auto whole = play(format, begins, {text});
    EXPECT_EQ(play(format, begins, cut(text, random)), whole)
        << "seed " << kSeed << " round " << round << ": " << text;
    for (const auto& event : whole) {
      if (event.kind == Kind::kContent) {
        EXPECT_EQ(event.text.find("<think>"), std::string::npos) << text;
        EXPECT_EQ(event.text.find("<tool_call>"), std::string::npos) << text;
      } else if (event.kind == Kind::kReasoning) {
        EXPECT_EQ(event.text.find("</think>"), std::string::npos) << text;
      }
    }
  }
}

AnswerFormat thinking_json() {
  AnswerFormat format;
  format.reasoning = {"<think>", "</think>"};
  format.tool_calls = find_tool_call_format("json_tools");
  return format;
}

TEST(AnswerSplitter, HoldsBackOnlyWhatMayBecomeAMark) {
  AnswerSplitter splitter(thinking_json(), {}, AnswerPart::kContent);
  const auto content = [](std::string text) {
    return Events{{.kind = Kind::kContent, .text = std::move(text)}};
  };
  EXPECT_EQ(splitter.push("a<"), content("a"));
  EXPECT_EQ(splitter.push("t"), Events{});
  EXPECT_EQ(splitter.push("o"), Events{});
  EXPECT_EQ(splitter.push("p"), content("<top"));
  EXPECT_EQ(splitter.push("</thi"), content("</thi"));
  EXPECT_EQ(splitter.push("<<think"), content("<"));
  EXPECT_EQ(splitter.finish(), content("<think"));
}

TEST(AnswerSplitter, ACallBeginsAtItsMarkAndEndsAtItsMark) {
  AnswerSplitter splitter(thinking_json(), {}, AnswerPart::kReasoning);
  EXPECT_EQ(
      splitter.push("so<tool_call>"),
      (Events{{.kind = Kind::kReasoning, .text = "so"}})
  );
  EXPECT_EQ(splitter.push(R"({"name": "f", "arguments": {"a":)"), Events{});
  EXPECT_EQ(splitter.push(R"( "<think>"}}</tool_call)"), Events{});
  const ToolCall call{.name = "f", .arguments = R"({"a": "<think>"})"};
  EXPECT_EQ(
      splitter.push("> x"),
      (Events{
          {.kind = Kind::kToolCalls, .calls = {call}},
          {.kind = Kind::kContent, .text = " x"}})
  );
  EXPECT_EQ(splitter.finish(), Events{});
}

TEST(AnswerSplitter, ABrokenCallIsGivenOutAsItWasWritten) {
  const auto failed = [](const Events& events) {
    EXPECT_EQ(events.back().kind, Kind::kToolCallsFailed);
    EXPECT_NE(events.back().error.find("[text.tool_call]"), std::string::npos);
    return events.back().text;
  };
  for (const std::string text :
       {"<tool_call>{nonsense</tool_call>",
        "<tool_call>{\"name\": \"f\", \"arg",
        "<tool_call>",
        "<tool_call></tool_call>",
        "<tool_call>x</tool_ca"}) {
    const auto played = play(thinking_json(), AnswerPart::kContent, {text});
    ASSERT_EQ(played.size(), 1U) << text;
    EXPECT_EQ(failed(played), text);
    EXPECT_EQ(count_calls(played), 0U);
  }
}

TEST(AnswerSplitter, NoCallIsMadeUpWhenTheAnswerEndsAtItsMark) {
  AnswerFormat format;
  format.tool_calls = find_tool_call_format("glm47");
  const auto played = play(format, AnswerPart::kContent, {"<tool_call>"});
  EXPECT_EQ(played.back().kind, Kind::kToolCallsFailed);
  EXPECT_EQ(count_calls(played), 0U);
}

TEST(AnswerSplitter, WithoutAFormatOfCallsTheirTextIsContent) {
  AnswerFormat format = thinking_json();
  format.tool_calls = nullptr;
  const std::string text = "<tool_call>{}</tool_call>";
  EXPECT_EQ(
      play(format, AnswerPart::kContent, {text}),
      (Events{{.kind = Kind::kContent, .text = text}})
  );
  format = *infer_answer_format("", vocabulary(Json::array()), "muse_spark");
  format.tool_calls = nullptr;
  const std::string muse =
      "to=user<|message|>a<atem:function_calls><|eom|><atem:function_calls>"
      "to=user<|message|>b";
  EXPECT_EQ(
      play(format, AnswerPart::kHeader, {muse}),
      (Events{{.kind = Kind::kContent, .text = "a<atem:function_calls>b"}})
  );
}

TEST(AnswerFormat, RecognisedAsMlxLmRecognisesIt) {
  const Json all = golden("tool_calls.json");
  for (const auto& entry : all["models"]) {
    const auto format = infer_answer_format(
        entry["template"].get<std::string>(), vocabulary(entry["tokens"]), ""
    );
    ASSERT_TRUE(format.ok()) << format.error().message;
    const std::string name(
        format->tool_calls ? format->tool_calls->name : "none"
    );
    EXPECT_EQ(name, entry["format"].is_null() ? "none" : entry["format"])
        << entry;
    Json reasoning;
    if (format->reasoning) {
      reasoning = {format->reasoning->start, format->reasoning->end};
    }
    EXPECT_EQ(reasoning, entry["reasoning"]) << entry;
    Json structural = Json::array();
    for (const auto& mark : format->further) {
      if (name != "muse_spark") {
        structural.push_back(mark.text);
      }
    }
    EXPECT_EQ(structural, entry["structural"]) << entry;
  }
  EXPECT_GE(all["models"].size(), 29U);
}

/// The name of the format that is recognised; "none".
std::string format_of_calls(
    const std::string& chat_template, const Json& tokens = Json::array()
) {
  const auto format =
      infer_answer_format(chat_template, vocabulary(tokens), "");
  return format->tool_calls ? std::string(format->tool_calls->name) : "none";
}

TEST(AnswerFormat, CallsInMarksAreRecognisedHoweverATemplateWritesThem) {
  // None of these is known to mlx_lm.
  const std::string shown = "Answer <tool_call>{json}</tool_call> to call.";
  EXPECT_EQ(format_of_calls(shown), "json_tools");
  EXPECT_EQ(
      format_of_calls("'<tool_call>' + (call.function | tojson) + "
                      "'</tool_call>'"),
      "json_tools"
  );
  EXPECT_EQ(
      format_of_calls("'<tool_call>' + nl + '<function=' + name + '>' + nl + "
                      "'</function></tool_call>'"),
      "qwen3_coder"
  );
  // A mark alone may be anything.
  EXPECT_EQ(format_of_calls("no <tool_call> please"), "none");
  EXPECT_EQ(format_of_calls("<tool_calls>[]</tool_calls>"), "none");
  // What mlx_lm recognises comes first, by the vocabulary, too.
  const Json pythonic = {"<|tool_call_start|>", "<|tool_call_end|>"};
  EXPECT_EQ(format_of_calls(shown, pythonic), "pythonic");
  EXPECT_EQ(format_of_calls("[TOOL_CALLS]" + shown), "mistral");
}

TEST(AnswerFormat, TellsAMarkOfReasoning) {
  EXPECT_EQ(AnswerFormat().reasoning_mark(), "");
  const Json tokens = {"<think>", "</think>"};
  EXPECT_EQ(
      infer_answer_format("", vocabulary(tokens), "")->reasoning_mark(),
      "<think>"
  );
  const auto muse =
      infer_answer_format("", vocabulary(Json::array()), "muse_spark");
  EXPECT_EQ(muse->reasoning_mark(), "to=self<|message|>");
}

TEST(AnswerFormat, AConfigNamesTheFormatOfCalls) {
  EXPECT_EQ(*tool_parser_type_in_config(R"({"tool_parser_type": "x"})"), "x");
  EXPECT_EQ(*tool_parser_type_in_config(R"({"tool_parser_type": null})"), "");
  EXPECT_EQ(*tool_parser_type_in_config("{}"), "");
  for (const auto* text : {"", "[]", R"({"tool_parser_type": 1})"}) {
    EXPECT_EQ(tool_parser_type_in_config(text).error().code, Code::kCorrupt);
  }
  const auto none = vocabulary(Json::array());
  EXPECT_EQ(
      infer_answer_format("[TOOL_CALLS]", none, "laguna")->tool_calls->name,
      "laguna"
  );
  const auto unknown = infer_answer_format("[TOOL_CALLS]", none, "new_one");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, Code::kUnsupported);
  EXPECT_NE(unknown.error().message.find("\"new_one\""), std::string::npos);
}

TEST(AnswerFormat, APromptThatOpensReasoningIsAnsweredInsideOfIt) {
  const auto format = thinking_json();
  using enum AnswerPart;
  EXPECT_EQ(format.begins_after(""), kContent);
  EXPECT_EQ(format.begins_after("user\nhi\nassistant\n<think>\n"), kReasoning);
  EXPECT_EQ(format.begins_after("<think>\n\n</think>\n\n"), kContent);
  EXPECT_EQ(format.begins_after("<think>a</think>b\n<think>"), kReasoning);
  EXPECT_EQ(format.begins_after("</think>"), kContent);
  EXPECT_EQ(AnswerFormat{}.begins_after("<think>"), kContent);
  const auto muse = infer_answer_format(
      "<atem:function_calls>", [](auto) { return false; }, ""
  );
  EXPECT_EQ(muse->begins_after("x"), kHeader);
}

}  // namespace
}  // namespace afterglow
