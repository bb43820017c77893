#include "server/openai_schema.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

namespace afterglow {
namespace {

using json = nlohmann::ordered_json;

const RequestDefaults kDefaults{
    .temperature = 0.25,
    .top_p = 0.9,
    .top_k = 7,
    .min_p = 0.1,
    .max_tokens = 33};
constexpr char kMessages[] = R"("messages":[{"role":"user","content":"hi"}])";

std::string chat_body(const std::string& more) {
  return "{" + std::string(kMessages) + (more.empty() ? "" : "," + more) + "}";
}
std::string text_body(const std::string& more) {
  return "{\"prompt\":\"hi\"" + (more.empty() ? "" : "," + more) + "}";
}

CompletionRequest good_chat(const std::string& body) {
  auto parsed = parse_chat_request(body, kDefaults);
  if (const auto* error = std::get_if<ApiError>(&parsed)) {
    ADD_FAILURE() << body << " -> " << error->message;
    return {};
  }
  return std::get<CompletionRequest>(std::move(parsed));
}
CompletionRequest good_text(const std::string& body) {
  auto parsed = parse_text_request(body, kDefaults);
  if (const auto* error = std::get_if<ApiError>(&parsed)) {
    ADD_FAILURE() << body << " -> " << error->message;
    return {};
  }
  return std::get<CompletionRequest>(std::move(parsed));
}

struct Bad {
  std::string fields;
  std::string param;
  std::string in_message;
};

void expect_bad(
    const std::variant<CompletionRequest, ApiError>& parsed,
    const std::string& body,
    const Bad& bad
) {
  const auto* error = std::get_if<ApiError>(&parsed);
  ASSERT_NE(error, nullptr) << body;
  EXPECT_EQ(error->status, 400U) << body;
  EXPECT_EQ(error->type, "invalid_request_error") << body;
  EXPECT_EQ(error->param, bad.param) << body << error->message;
  EXPECT_NE(error->message.find(bad.in_message), std::string::npos)
      << body << " -> " << error->message;
}

TEST(Schema, DefaultsComeFromTheServer) {
  const auto request = good_chat(chat_body(""));
  EXPECT_TRUE(request.chat());
  EXPECT_EQ(request.sampling.temperature, 0.25);
  EXPECT_EQ(request.sampling.top_p, 0.9);
  EXPECT_EQ(request.sampling.top_k, 7U);
  EXPECT_EQ(request.sampling.min_p, 0.1);
  EXPECT_EQ(request.max_tokens, 33U);
  EXPECT_FALSE(request.stream);
  EXPECT_FALSE(request.logprobs);
  EXPECT_TRUE(request.cache_read);
  EXPECT_TRUE(request.cache_store);
  EXPECT_EQ(request.cache_key, "");
  EXPECT_FALSE(request.sampling.seed.has_value());
  EXPECT_EQ(request.sampling.repetition_context_size, 20U);
}

TEST(Schema, EveryFieldReachesTheRequest) {
  const auto request = good_chat(chat_body(R"(
    "temperature":1.5,"top_p":0.5,"top_k":40,"min_p":0.05,"seed":-3,
    "repetition_penalty":1.1,"repetition_context_size":5,
    "presence_penalty":-0.5,"presence_context_size":6,
    "frequency_penalty":0.75,"frequency_context_size":7,
    "xtc_probability":0.3,"xtc_threshold":0.2,
    "logit_bias":{"5":-100,"17":1.5},"stop":["a","bc"],
    "max_tokens":9,"stream":true,"stream_options":{"include_usage":true},
    "logprobs":true,"top_logprobs":3,"cache_prompt":false,
    "chat_template_kwargs":{"enable_thinking":false},
    "model":"gpt-4o","user":"me","metadata":{"a":"b"},"n":1,
    "response_format":{"type":"text"},"tools":[],"tool_choice":"none"
  )"));
  const SamplingParams& s = request.sampling;
  EXPECT_EQ(s.temperature, 1.5);
  EXPECT_EQ(s.top_p, 0.5);
  EXPECT_EQ(s.top_k, 40U);
  EXPECT_EQ(s.min_p, 0.05);
  EXPECT_EQ(s.seed, static_cast<std::uint64_t>(-3));
  EXPECT_EQ(s.repetition_penalty, 1.1);
  EXPECT_EQ(s.repetition_context_size, 5U);
  EXPECT_EQ(s.presence_penalty, -0.5);
  EXPECT_EQ(s.presence_context_size, 6U);
  EXPECT_EQ(s.frequency_penalty, 0.75);
  EXPECT_EQ(s.frequency_context_size, 7U);
  EXPECT_EQ(s.xtc_probability, 0.3);
  EXPECT_EQ(s.xtc_threshold, 0.2);
  const std::vector<std::pair<Token, float>> bias{{5, -100.0F}, {17, 1.5F}};
  EXPECT_EQ(s.logit_bias, bias);
  EXPECT_EQ(request.stops, (std::vector<std::string>{"a", "bc"}));
  EXPECT_EQ(request.max_tokens, 9U);
  EXPECT_TRUE(request.stream);
  EXPECT_TRUE(request.include_usage);
  EXPECT_TRUE(request.logprobs);
  EXPECT_EQ(request.top_logprobs, 3U);
  EXPECT_FALSE(request.cache_read);
  EXPECT_FALSE(request.cache_store);
  EXPECT_EQ(
      std::get<ChatPrompt>(request.prompts.front()).kwargs_json,
      R"({"enable_thinking":false})"
  );
}

TEST(Schema, TemplateVariablesOfTheRequestWinOverTheServers) {
  RequestDefaults defaults = kDefaults;
  defaults.chat_template_args = R"({"a":1,"enable_thinking":true})";
  const auto variables = [&](const std::string& more) {
    const auto parsed = parse_chat_request(chat_body(more), defaults);
    const auto& request = std::get<CompletionRequest>(parsed);
    return std::get<ChatPrompt>(request.prompts.front()).kwargs_json;
  };
  EXPECT_EQ(variables(""), defaults.chat_template_args);
  EXPECT_EQ(
      variables(R"("chat_template_kwargs":null)"), defaults.chat_template_args
  );
  EXPECT_EQ(
      variables(R"("chat_template_kwargs":{"enable_thinking":false,"b":[2]})"),
      R"({"a":1,"enable_thinking":false,"b":[2]})"
  );
}

TEST(Schema, TheCacheIsReadAndWrittenAsAsked) {
  struct Case {
    const char* fields;
    bool read;
    bool store;
  };
  for (const Case& c : {
           Case{R"("cache":{})", true, true},
           Case{R"("cache":null)", true, true},
           Case{R"("cache":{"store":false})", true, false},
           Case{R"("cache":{"read":false,"store":null})", false, true},
           Case{R"("cache":{"read":true,"store":true})", true, true},
           Case{R"("cache_prompt":true,"cache":{"read":false})", false, true},
           Case{R"("cache_prompt":false,"cache":{"read":true})", false, false},
       }) {
    for (const auto& request :
         {good_chat(chat_body(c.fields)), good_text(text_body(c.fields))}) {
      EXPECT_EQ(request.cache_read, c.read) << c.fields;
      EXPECT_EQ(request.cache_store, c.store) << c.fields;
    }
  }
  EXPECT_EQ(
      good_text(text_body(R"("prompt_cache_key":"team")")).cache_key, "team"
  );
}

TEST(Schema, NullIsAbsent) {
  const auto request = good_chat(chat_body(R"(
    "temperature":null,"max_tokens":null,"stop":null,"tools":null,"n":null,
    "stream":null,"stream_options":null,"logit_bias":null,"adapters":null,
    "response_format":null,"functions":null,"draft_model":null
  )"));
  EXPECT_EQ(request.sampling.temperature, 0.25);
  EXPECT_EQ(request.max_tokens, 33U);
}

TEST(Schema, NewerNameOfMaxTokensWins) {
  EXPECT_EQ(
      good_chat(chat_body(R"("max_tokens":5,"max_completion_tokens":6)"))
          .max_tokens,
      6U
  );
}

TEST(Schema, ContentBecomesText) {
  const auto request = good_chat(R"({"messages":[
    {"role":"developer","content":"be brief"},
    {"role":"user","content":[{"type":"text","text":"a"},
                              {"type":"text","text":"b"}]},
    {"role":"assistant","content":null,"tool_calls":[{"id":"1",
      "type":"function","function":{"name":"f","arguments":"{\"z\":1}"}}]},
    {"role":"tool","tool_call_id":"1","content":"42"},
    {"role":"assistant"},
    {"role":"user","content":"c","name":"x"}]})");
  const json messages =
      json::parse(std::get<ChatPrompt>(request.prompts.front()).messages_json);
  EXPECT_EQ(messages[0]["role"], "system");
  EXPECT_EQ(messages[1]["content"], "ab");
  EXPECT_EQ(messages[2]["content"], "");
  EXPECT_EQ(
      messages[2]["tool_calls"][0]["function"]["arguments"], json({{"z", 1}})
  );
  EXPECT_EQ(messages[3]["tool_call_id"], "1");
  EXPECT_EQ(messages[4]["content"], "");
  EXPECT_EQ(messages[5]["name"], "x");
}

TEST(Schema, RolesAreOpenAisAndThoseOfMappingsAndTemplates) {
  const auto request = good_chat(R"({"role_mapping":{"bot":"B: "},"messages":[
    {"role":"system","content":"a"},{"role":"user","content":"b"},
    {"role":"assistant","content":"c"},{"role":"tool","content":"d"},
    {"role":"function","content":"e"},{"role":"bot","content":"f"},
    {"role":"ipython","content":"g"}]})");
  const json messages = json::parse(request.chat_prompt()->messages_json);
  ASSERT_EQ(messages.size(), 7U);
  EXPECT_EQ(messages[4]["role"], "function");
  EXPECT_EQ(messages[5]["role"], "bot");
  EXPECT_EQ(messages[6]["role"], "ipython");
}

TEST(Schema, ArgumentsThatAreEmptyOrAbsentAreNone) {
  for (const char* function :
       {R"({"name":"f","arguments":""})",
        R"({"name":"f","arguments":" \n"})",
        R"({"name":"f","arguments":null})",
        R"({"name":"f","arguments":"{}"})",
        R"({"name":"f"})"}) {
    const auto request = good_chat(
        R"({"messages":[{"role":"assistant","tool_calls":[{"function":)" +
        std::string(function) + "}]}]}"
    );
    const json messages = json::parse(request.chat_prompt()->messages_json);
    EXPECT_EQ(
        messages[0]["tool_calls"][0]["function"]["arguments"], json::object()
    ) << function;
  }
}

TEST(Schema, MinusOneIsAsFarAsTheContextGoes) {
  constexpr auto kAll = std::numeric_limits<std::size_t>::max();
  for (const char* fields :
       {R"("max_tokens":-1)",
        R"("max_completion_tokens":-1)",
        R"("n_predict":-1)",
        R"("max_tokens":5,"max_completion_tokens":-1)"}) {
    EXPECT_EQ(good_chat(chat_body(fields)).max_tokens, kAll) << fields;
    EXPECT_EQ(good_text(text_body(fields)).max_tokens, kAll) << fields;
  }
  RequestDefaults defaults = kDefaults;
  defaults.max_tokens = kNoTokenLimit;
  const auto unsaid = parse_chat_request(chat_body(""), defaults);
  EXPECT_EQ(std::get<CompletionRequest>(unsaid).max_tokens, kAll);
}

TEST(Schema, LlamaServersNamesMeanTheSame) {
  const auto request = good_text(text_body(
      R"("n_predict":7,"repeat_penalty":1.2,"id_slot":-1,
         "timings_per_token":false)"
  ));
  EXPECT_EQ(request.max_tokens, 7U);
  EXPECT_EQ(request.sampling.repetition_penalty, 1.2);
  const auto both = good_text(text_body(
      R"("n_predict":7,"max_tokens":8,"repeat_penalty":1.2,
         "repetition_penalty":1.3)"
  ));
  EXPECT_EQ(both.max_tokens, 8U);
  EXPECT_EQ(both.sampling.repetition_penalty, 1.3);
}

TEST(Schema, AnEmptyStopIsNone) {
  EXPECT_TRUE(good_chat(chat_body(R"("stop":"")")).stops.empty());
  EXPECT_TRUE(good_chat(chat_body(R"("stop":[])")).stops.empty());
  EXPECT_TRUE(good_chat(chat_body(R"("stop":[""])")).stops.empty());
  EXPECT_EQ(
      good_chat(chat_body(R"("stop":["","a"])")).stops,
      std::vector<std::string>{"a"}
  );
}

TEST(Schema, TiersThatAskForNothingAreTaken) {
  good_chat(chat_body(R"("service_tier":"auto")"));
  good_chat(chat_body(R"("service_tier":"default")"));
}

TEST(Schema, BadFieldsOfBothEndpointsAreNamed) {
  const std::vector<Bad> table = {
      {R"("temperature":-0.1)", "temperature", "at least 0"},
      {R"("temperature":"hot")", "temperature", "number"},
      {R"("temperature":true)", "temperature", "number"},
      {R"("top_p":1.1)", "top_p", "between 0 and 1"},
      {R"("top_p":-1)", "top_p", "between 0 and 1"},
      {R"("top_k":-1)", "top_k", "between 0"},
      {R"("top_k":5.0)", "top_k", "integer"},
      {R"("top_k":18446744073709551615)", "top_k", "between 0"},
      {R"("min_p":2)", "min_p", "between 0 and 1"},
      {R"("max_tokens":0)", "max_tokens", "at least 1"},
      {R"("max_tokens":-2)", "max_tokens", "at least -1"},
      {R"("max_tokens":"5")", "max_tokens", "integer"},
      {R"("n_predict":0)", "n_predict", "at least 1"},
      {R"("n_predict":-2)", "n_predict", "at least -1"},
      {R"("repeat_penalty":-1)", "repeat_penalty", "at least 0"},
      {R"("id_slot":0)", "id_slot", "must be -1"},
      {R"("timings_per_token":true)", "timings_per_token", "not served"},
      {R"("max_completion_tokens":0)", "max_completion_tokens", "at least 1"},
      {R"("repetition_penalty":-1)", "repetition_penalty", "at least 0"},
      {R"("repetition_context_size":-1)", "repetition_context_size", "0"},
      {R"("presence_penalty":"x")", "presence_penalty", "number"},
      {R"("presence_context_size":1.5)", "presence_context_size", "integer"},
      {R"("frequency_penalty":[])", "frequency_penalty", "number"},
      {R"("frequency_context_size":-2)", "frequency_context_size", "0"},
      {R"("xtc_probability":1.5)", "xtc_probability", "between 0 and 1"},
      {R"("xtc_threshold":0.6)", "xtc_threshold", "between 0 and 0.5"},
      {R"("logit_bias":[1])", "logit_bias", "object"},
      {R"("logit_bias":{"x":1})", "logit_bias", "token ids"},
      {R"("logit_bias":{"-1":1})", "logit_bias", "token ids"},
      {R"("logit_bias":{"1x":1})", "logit_bias", "token ids"},
      {R"("logit_bias":{"":1})", "logit_bias", "token ids"},
      {R"("logit_bias":{"99999999999":1})", "logit_bias", "token ids"},
      {R"("logit_bias":{"1":"2"})", "logit_bias", "numbers"},
      {R"("seed":1.5)", "seed", "integer"},
      {R"("seed":"1")", "seed", "integer"},
      {R"("stop":5)", "stop", "string"},
      {R"("stop":[1])", "stop", "strings"},
      {R"("stop":["a",null])", "stop", "strings"},
      {R"("stream":"yes")", "stream", "true or false"},
      {R"("stream":1)", "stream", "true or false"},
      {R"("stream_options":{"include_usage":true})", "stream_options", "only"},
      {R"("stream":true,"stream_options":5)", "stream_options", "object"},
      {R"("stream":true,"stream_options":{"include_usage":1})",
       "stream_options.include_usage",
       "true or false"},
      {R"("stream":true,"stream_options":{"x":1})",
       "stream_options.x",
       "knows"},
      {R"("logprobs":"a")", "logprobs", "true or false"},
      {R"("logprobs":true,"top_logprobs":21)", "top_logprobs", "20"},
      {R"("top_logprobs":-1)", "top_logprobs", "0"},
      {R"("model":5)", "model", "string"},
      {R"("user":{})", "user", "string"},
      {R"("metadata":"x")", "metadata", "object"},
      {R"("cache_prompt":"no")", "cache_prompt", "true or false"},
      {R"("cache":true)", "cache", "object"},
      {R"("cache":{"store":1})", "cache.store", "true or false"},
      {R"("cache":{"read":"no"})", "cache.read", "true or false"},
      {R"("cache":{"write":true})", "cache.write", "knows"},
      {R"("prompt_cache_key":7)", "prompt_cache_key", "string"},
      {R"("n":0)", "n", "1"},
      {R"("n":129)", "n", "128"},
      {R"("n":"1")", "n", "integer"},
      {R"("best_of":3)", "best_of", "must be 1"},
      {R"("store":true)", "store", "not kept"},
      {R"("adapters":"a")", "adapters", "not served"},
      {R"("draft_model":"d")", "draft_model", "not served"},
      {R"("num_draft_tokens":3)", "num_draft_tokens", "not served"},
      {R"("response_format":{"type":"json_object"})",
       "response_format",
       "text"},
      {R"("unheard_of":1)", "unheard_of", "knows"},
  };
  for (const Bad& bad : table) {
    const std::string chat = chat_body(bad.fields);
    expect_bad(parse_chat_request(chat, kDefaults), chat, bad);
    const std::string text = text_body(bad.fields);
    expect_bad(parse_text_request(text, kDefaults), text, bad);
  }
}

TEST(Schema, BadChatFieldsAreNamed) {
  const std::vector<Bad> table = {
      {R"("tools":{})", "tools", "list"},
      {R"("tools":[7])", "tools[0]", "object"},
      {R"("tools":[{}])", "tools[0].type", "function"},
      {R"("tools":[{"type":"function"}])", "tools[0].function", "object"},
      {R"("tools":[{"type":"function","function":{"name":""}}])",
       "tools[0].function.name",
       "not empty"},
      {R"("tools":[{"type":"function","function":{"name":"f","parameters":1}}])",
       "tools[0].function.parameters",
       "object"},
      {R"("functions":[{}])", "functions", "not served"},
      {R"("tool_choice":"required")", "tool_choice", "auto"},
      {R"("tool_choice":{"type":"function"})", "tool_choice", "auto"},
      {R"("function_call":"auto")", "function_call", "not served"},
      {R"("modalities":["audio"])", "modalities", "text"},
      {R"("audio":{})", "audio", "not served"},
      {R"("parallel_tool_calls":1)", "parallel_tool_calls", "true or false"},
      {R"("role_mapping":[])", "role_mapping", "object"},
      {R"("role_mapping":{"user":1})", "role_mapping", "text"},
      {R"("reasoning_effort":"low")", "reasoning_effort", "not served"},
      {R"("service_tier":"priority")", "service_tier", "auto"},
      {R"("service_tier":5)", "service_tier", "auto"},
      {R"("logprobs":5)", "logprobs", "true or false"},
      {R"("prompt":"x")", "prompt", "knows"},
      {R"("echo":true)", "echo", "knows"},
      {R"("chat_template_kwargs":[])", "chat_template_kwargs", "object"},
      {R"("chat_template_kwargs":{"messages":[]})",
       "chat_template_kwargs",
       "replace"},
  };
  for (const Bad& bad : table) {
    const std::string body = chat_body(bad.fields);
    expect_bad(parse_chat_request(body, kDefaults), body, bad);
  }
  EXPECT_TRUE(std::holds_alternative<CompletionRequest>(
      parse_chat_request(chat_body(R"("modalities":["text"])"), kDefaults)
  ));
}

TEST(Schema, BadMessagesAreNamed) {
  const std::vector<Bad> table = {
      {R"({})", "messages", "missing"},
      {R"({"messages":null})", "messages", "missing"},
      {R"({"messages":"hi"})", "messages", "list"},
      {R"({"messages":[]})", "messages", "empty"},
      {R"({"messages":["hi"]})", "messages[0]", "object"},
      {R"({"messages":[{"content":"x"}]})", "messages[0].role", "missing"},
      {R"({"messages":[{"role":5,"content":"x"}]})",
       "messages[0].role",
       "string"},
      {R"({"messages":[{"role":"","content":"x"}]})",
       "messages[0].role",
       "not be empty"},
      {R"({"messages":[{"role":"asistant","content":"x"}]})",
       "messages[0].role",
       "is \"asistant\"; did you mean \"assistant\"?"},
      {R"({"messages":[{"role":"user","content":"x"},
           {"role":"User","content":"x"}]})",
       "messages[1].role",
       "is \"User\"; did you mean \"user\"?"},
      {R"({"messages":[{"role":"user"}]})", "messages[0].content", "missing"},
      {R"({"messages":[{"role":"user","content":5}]})",
       "messages[0].content",
       "string"},
      {R"({"messages":[{"role":"user","content":"a"},
           {"role":"user","content":["x"]}]})",
       "messages[1].content[0]",
       "object"},
      {R"({"messages":[{"role":"user","content":[{"text":"x"}]}]})",
       "messages[0].content[0].type",
       "string"},
      {R"({"messages":[{"role":"user","content":[{"type":"text"}]}]})",
       "messages[0].content[0].text",
       "string"},
      {R"({"messages":[{"role":"user","content":[
           {"type":"text","text":"x"},
           {"type":"image_url","image_url":{"url":"data:"}}]}]})",
       "messages[0].content[1].type",
       "image_url"},
      {R"({"messages":[{"role":"assistant","tool_calls":{}}]})",
       "messages[0].tool_calls",
       "list"},
      {R"({"messages":[{"role":"assistant","tool_calls":[{}]}]})",
       "messages[0].tool_calls[0].function",
       "object"},
      {R"({"messages":[{"role":"assistant","tool_calls":[
           {"function":{"arguments":"{"}}]}]})",
       "messages[0].tool_calls[0].function.arguments",
       "JSON"},
  };
  for (const Bad& bad : table) {
    expect_bad(parse_chat_request(bad.fields, kDefaults), bad.fields, bad);
  }
}

TEST(Schema, PromptsOfCompletions) {
  EXPECT_EQ(
      std::get<TextPrompt>(good_text(R"({"prompt":"hi"})").prompts.front()),
      "hi"
  );
  EXPECT_EQ(
      std::get<TextPrompt>(good_text(R"({"prompt":["hi"]})").prompts.front()),
      "hi"
  );
  EXPECT_EQ(
      std::get<TokenPrompt>(good_text(R"({"prompt":[1,2,3]})").prompts.front()),
      (TokenPrompt{1, 2, 3})
  );
  const std::vector<Bad> table = {
      {R"({})", "prompt", "missing"},
      {R"({"prompt":5})", "prompt", "string"},
      {R"({"prompt":{}})", "prompt", "string"},
      {R"({"prompt":[]})", "prompt", "empty"},
      {R"({"prompt":["a",["b"]]})", "prompt", "list of such"},
      {R"({"prompt":["a",1]})", "prompt", "token ids"},
      {R"({"prompt":["a","b"],"n":65})", "n", "128"},
      {R"({"prompt":[1,-2]})", "prompt", "token ids"},
      {R"({"prompt":[1,2.5]})", "prompt", "token ids"},
      {R"({"prompt":[4294967296]})", "prompt", "token ids"},
      {R"({"prompt":"a","echo":true})", "echo", "not served"},
      {R"({"prompt":"a","suffix":"b"})", "suffix", "not served"},
      {R"({"prompt":"a","logprobs":21})", "logprobs", "20"},
      {R"({"prompt":"a","messages":[]})", "messages", "knows"},
      {R"({"prompt":"a","tools":[]})", "tools", "knows"},
  };
  for (const Bad& bad : table) {
    expect_bad(parse_text_request(bad.fields, kDefaults), bad.fields, bad);
  }
}

TEST(Schema, SeveralPromptsAreToldFromTokenIds) {
  const auto texts = good_text(R"({"prompt":["a","b"],"n":64})");
  ASSERT_EQ(texts.prompts.size(), 2U);
  EXPECT_EQ(std::get<TextPrompt>(texts.prompts[1]), "b");
  EXPECT_EQ(texts.choices(), 128U);
  const auto mixed = good_text(R"({"prompt":[[1,2],"b"]})");
  ASSERT_EQ(mixed.prompts.size(), 2U);
  EXPECT_EQ(std::get<TokenPrompt>(mixed.prompts[0]), (TokenPrompt{1, 2}));
  EXPECT_EQ(std::get<TextPrompt>(mixed.prompts[1]), "b");
}

TEST(Schema, ToolsGoToTheTemplateAsTheyCame) {
  const std::string tools =
      R"([{"type":"function","function":{"name":"f","strict":true}}])";
  const auto request = good_chat(chat_body(R"("tools":)" + tools));
  EXPECT_EQ(request.chat_prompt()->tools_json, tools);
  EXPECT_TRUE(request.call_tools);
  EXPECT_TRUE(request.parallel_tool_calls);
  const auto none = good_chat(chat_body(
      R"("tool_choice":"none","parallel_tool_calls":false,"tools":)" + tools
  ));
  EXPECT_EQ(none.chat_prompt()->tools_json, tools);
  EXPECT_FALSE(none.call_tools);
  EXPECT_FALSE(none.parallel_tool_calls);
  EXPECT_EQ(
      good_chat(chat_body(R"("tools":[])")).chat_prompt()->tools_json, ""
  );
}

TEST(Schema, LogprobsOfCompletionsIsACountOrASwitch) {
  const auto count = good_text(text_body(R"("logprobs":4)"));
  EXPECT_TRUE(count.logprobs);
  EXPECT_EQ(count.top_logprobs, 4U);
  const auto zero = good_text(text_body(R"("logprobs":0)"));
  EXPECT_TRUE(zero.logprobs);
  EXPECT_EQ(zero.top_logprobs, 0U);
  const auto on = good_text(text_body(R"("logprobs":true)"));
  EXPECT_TRUE(on.logprobs);
  EXPECT_FALSE(good_text(text_body(R"("logprobs":false)")).logprobs);
}

TEST(Schema, BodiesThatAreNoObjectAreRefused) {
  for (const std::string body :
       {"",
        "[]",
        "5",
        "null",
        "\"x\"",
        "{",
        "{\"a\":1,\"a\":1}",
        "{\"prompt\":\"\xff\"}",
        "{}{}"}) {
    const auto parsed = parse_text_request(body, kDefaults);
    const auto* error = std::get_if<ApiError>(&parsed);
    ASSERT_NE(error, nullptr) << body;
    EXPECT_EQ(error->status, 400U);
    EXPECT_EQ(error->code, "invalid_json");
  }
}

}  // namespace
}  // namespace afterglow
