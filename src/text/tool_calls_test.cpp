#include "text/tool_calls.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "text/testing.h"

namespace afterglow {
namespace {

using testing::golden;
using testing::Json;

ToolSchemas schemas_of(const Json& tools) {
  auto schemas = ToolSchemas::parse(tools.dump());
  CHECK(schemas.ok(), schemas.error().message);
  return *std::move(schemas);
}

Json as_json(const std::vector<ToolCall>& calls) {
  Json out = Json::array();
  for (const auto& call : calls) {
    out.push_back(
        {{"id", call.id}, {"name", call.name}, {"arguments", call.arguments}}
    );
  }
  return out;
}

std::string outcome(const ToolCallFormat& format, const Json& entry) {
  static const ToolSchemas known =
      schemas_of(golden("tool_calls.json")["tools"]);
  const auto parsed = format.parse(
      entry["text"].get<std::string>(),
      entry["tools"].get<bool>() ? known : ToolSchemas()
  );
  return parsed ? as_json(*parsed).dump() : "error";
}

TEST(ToolCalls, FormatsAreThoseOfMlxLm) {
  Json ours = Json::array();
  for (const auto& format : tool_call_formats()) {
    ours.push_back(
        {{"name", format.name}, {"start", format.start}, {"end", format.end}}
    );
    EXPECT_EQ(find_tool_call_format(format.name), &format);
  }
  EXPECT_EQ(ours, golden("tool_calls.json")["formats"]);
  EXPECT_EQ(find_tool_call_format("other"), nullptr);
}

TEST(ToolCalls, ParsedAsMlxLmParsesThem) {
  std::map<std::string, int> calls;
  std::map<std::string, int> errors;
  const Json all = golden("tool_calls.json");
  for (const auto& entry : all["calls"]) {
    if (entry.contains("crash")) {
      continue;
    }
    const std::string name = entry["format"];
    const bool error = entry.contains("error");
    const auto wanted = error ? "error" : entry["calls"].dump();
    EXPECT_EQ(outcome(*find_tool_call_format(name), entry), wanted)
        << name << (entry["tools"].get<bool>() ? " with" : " without")
        << " tools: " << entry["text"];
    ++(error ? errors : calls)[name];
  }
  for (const auto& format : tool_call_formats()) {
    EXPECT_GE(calls[std::string(format.name)], 30) << format.name;
  }
  EXPECT_GE(errors.size(), 9U);
}

/// The calls' arguments in order, or the error's text.
std::vector<std::string> parse(
    std::string_view name,
    const std::string& text,
    const ToolSchemas& schemas = {}
) {
  const auto parsed = find_tool_call_format(name)->parse(text, schemas);
  if (!parsed) {
    EXPECT_EQ(parsed.error().code, Code::kCorrupt);
    return {parsed.error().message};
  }
  std::vector<std::string> found;
  for (const auto& call : *parsed) {
    found.push_back(call.arguments);
  }
  return found;
}

using Texts = std::vector<std::string>;

TEST(ToolCalls, WhatPythonCannotPutIntoJsonStaysText) {
  const Json all = golden("tool_calls.json");
  int seen = 0;
  for (const auto& entry : all["calls"]) {
    const std::string text = entry["text"];
    if (entry.contains("crash") && text.find("{1, }") != std::string::npos) {
      const auto got = outcome(
          *find_tool_call_format(entry["format"].get<std::string>()), entry
      );
      EXPECT_NE(got.find("\"{1"), std::string::npos) << text << "\n" << got;
      ++seen;
    }
  }
  EXPECT_GE(seen, 10);
  EXPECT_EQ(
      parse("glm47", "f<arg_key>i</arg_key><arg_value>NaN</arg_value>"),
      Texts{R"({"i": "NaN"})"}
  );
  EXPECT_EQ(
      parse("glm47", "f<arg_key>i</arg_key><arg_value>1j</arg_value>"),
      Texts{R"({"i": "1j"})"}
  );
  EXPECT_EQ(
      parse("glm47", "f<arg_key>i</arg_key><arg_value>1e999</arg_value>"),
      Texts{R"({"i": "1e999"})"}
  );
}

TEST(ToolCalls, WhereMlxLmsServerBreaksTheyAreReadOrRefused) {
  EXPECT_EQ(parse("json_tools", R"({"name": "f"})"), Texts{"{}"});
  EXPECT_EQ(parse("longcat", R"({"name": "f"})"), Texts{"{}"});
  for (const std::string text : {"5", "[]", "[5]", "{}", R"({"name": 1})"}) {
    EXPECT_EQ(
        parse("json_tools", text)[0].find("[text.tool_call] the model's json"),
        0U
    ) << text;
  }
  const ToolSchemas schemas = schemas_of(golden("tool_calls.json")["tools"]);
  const std::string endless =
      "<function=f><parameter=i>inf</parameter></function>";
  EXPECT_EQ(
      parse("qwen3_coder", endless, schemas)[0],
      "[text.tool_call] the model's qwen3_coder call cannot be read: argument "
      "i is not such a number"
  );
  EXPECT_EQ(
      parse("longcat", "f")[0],
      "[text.tool_call] the model's longcat call cannot be read: it has no "
      "arguments"
  );
}

TEST(ToolCalls, ReservedWordsMayNameArguments) {
  EXPECT_EQ(
      parse("pythonic", R"([f(from="5", in=[1], class='it\'s')])"),
      Texts{R"({"from": "5", "in": [1], "class": "it's"})"}
  );
}

TEST(ToolCalls, IntegersBeyond64BitsBecomeFloatingPoint) {
  EXPECT_EQ(
      parse(
          "json_tools",
          R"({"name": "f", "arguments": {"i": 1)" + std::string(25, '0') + "}}"
      ),
      Texts{R"({"i": 1e+25})"}
  );
  EXPECT_EQ(
      parse(
          "json_tools",
          R"({"name": "f", "arguments": {"i": 18446744073709551615}})"
      ),
      Texts{R"({"i": 18446744073709551615})"}
  );
}

TEST(ToolCalls, DeepNestingIsRefusedAndNoCrash) {
  for (const int depth : {190, 100000}) {
    const std::string open(depth, '[');
    const std::string close(depth, ']');
    const auto json = parse(
        "json_tools",
        R"({"name": "f", "arguments": {"a": )" + open + close + "}}"
    );
    EXPECT_EQ(json[0].find(R"({"a": [)") == 0, depth == 190) << depth;
    const auto mistral = parse("mistral", "f[ARGS]" + open + close);
    EXPECT_EQ(mistral[0].find("[[") == 0, depth == 190) << depth;
    const auto python =
        parse("pythonic", "[f(a=" + open + "True," + close + ")]");
    EXPECT_EQ(python[0].find("true") != std::string::npos, depth == 190);
  }
}

TEST(ToolCalls, LongOddTextsAreReadInTime) {
  const Texts seeds = {
      "[f(",
      "call:f{",
      "<arg_key>",
      "<arg_key>a</arg_key>",
      "\"",
      "name=\"",
      "<parameter=",
      "[ARGS]",
      "f[ARGS]{",
      "<invoke name=",
      "'",
      "<param ",
      "<atem:invoke name=\"",
      "<atem:parameter ",
      "<|\"|>",
      "a ",
      "x",
      "((",
      "<|open|>call tool=\"",
      "<|tool_call_begin|>",
      "{\"a\":",
      "\\",
      "a=1,",
      "1:<|tool_call_argument_begin|>",
      "<function=",
      "#",
      "\xc2\xa0"};
  std::string report;
  for (const auto& format : tool_call_formats()) {
    for (const auto& seed : seeds) {
      std::string text;
      while (text.size() < 60000) {
        text += seed;
      }
      const auto start = std::chrono::steady_clock::now();
      (void)format.parse(text, ToolSchemas());
      const std::chrono::duration<double> took =
          std::chrono::steady_clock::now() - start;
      if (took.count() > 4.0) {
        report += std::string(format.name) + " " + seed + " " +
                  std::to_string(took.count()) + " s\n";
      }
    }
  }
  EXPECT_EQ(report, "");
}

TEST(ToolSchemas, OtherShapesAreNamedOrSayNothing) {
  for (const std::string text : {"", "{}", "[1", "null"}) {
    const auto schemas = ToolSchemas::parse(text);
    ASSERT_FALSE(schemas.ok()) << text;
    EXPECT_EQ(schemas.error().code, Code::kInvalidArgument);
    EXPECT_NE(schemas.error().message.find("tools:"), std::string::npos);
  }
  const ToolSchemas odd = schemas_of(Json::parse(R"([
      1, {}, {"function": 2}, {"function": {"name": 3}},
      {"function": {"name": "f", "parameters": {"properties": {"a": 4}}}},
      {"function": {"name": "f", "parameters": {"properties": {"b": {}}}}},
      {"function": {"name": "g", "parameters": []}}])"));
  EXPECT_EQ(odd.properties("f").dump(), R"({"a":4})");
  EXPECT_EQ(odd.properties("g").dump(), "{}");
  EXPECT_EQ(odd.properties("h").dump(), "{}");
  const std::string call = "f<arg_key>a</arg_key><arg_value>5</arg_value>";
  EXPECT_EQ(parse("glm47", call, odd), Texts{R"({"a": 5})"});
}

}  // namespace
}  // namespace afterglow
