#include "afterglow/generate.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <tuple>

#include "api/testing.h"

namespace afterglow {
namespace {

Token most_likely(std::span<const float> values) {
  return static_cast<Token>(
      std::max_element(values.begin(), values.end()) - values.begin()
  );
}

TEST(Generate, JoinsWhatAStreamGives) {
  Model model = load_tiny();
  const auto prompt = some_tokens(20);
  std::string text;
  StepOutput last;
  GenerateOptions options;
  options.max_tokens = 12;
  options.sampling.logit_bias = endless();
  std::size_t count = 0;
  for (const StepOutput& output : stream_generate(model, prompt, options)) {
    EXPECT_EQ(output.generation_tokens, ++count);
    EXPECT_EQ(output.prompt_tokens, 20u);
    EXPECT_GT(output.prompt_tps, 0);
    EXPECT_GT(output.peak_memory, 0u);
    EXPECT_FALSE(output.cache_history);
    EXPECT_EQ(output.finish_reason.has_value(), count == 12);
    text += output.text;
    last = output;
  }
  EXPECT_EQ(last.finish_reason, FinishReason::kLength);
  const StepOutput whole = generate(model, prompt, options);
  EXPECT_EQ(whole.text, text);
  EXPECT_EQ(whole.finish_reason, FinishReason::kLength);
  EXPECT_EQ(whole.generation_tokens, 12u);
}

TEST(Generate, EndsAtAStopTokenAndSaysWhich) {
  Model model = load_tiny();
  const auto prompt = some_tokens(20);
  const auto tokens = answer_to(model, prompt).tokens;
  GenerateOptions options;
  options.stop_tokens = {tokens[5]};
  const auto first = std::find(tokens.begin(), tokens.end(), tokens[5]);
  const Answer answer = answer_to(model, prompt, options);
  EXPECT_EQ(answer.last.finish_reason, FinishReason::kStop);
  EXPECT_EQ(answer.last.token, tokens[5]);
  EXPECT_EQ(answer.tokens, std::vector<Token>(tokens.begin(), first + 1));
  EXPECT_EQ(
      answer.last.cache_history->size(),
      prompt.size() + answer.tokens.size() - 1
  );
}

TEST(Generate, CallersMayChooseAndChange) {
  Model model = load_tiny();
  const auto prompt = some_tokens(20);
  const auto greedy = answer_to(model, prompt).tokens;
  GenerateOptions options;
  options.sampler = most_likely;
  EXPECT_EQ(answer_to(model, prompt, options).tokens, greedy);

  // Log-probabilities, and a processor that sees prompt and answer.
  std::size_t seen = prompt.size();
  options.sampler = [](std::span<const float> logprobs) {
    double sum = 0;
    for (float p : logprobs) sum += std::exp(p);
    EXPECT_NEAR(sum, 1, 1e-4);
    return most_likely(logprobs);
  };
  options.logits_processors = {[&](std::span<const Token> tokens, auto logits) {
    EXPECT_EQ(tokens.size(), seen++);
    logits[greedy[0]] = -INFINITY;
  }};
  const auto changed = answer_to(model, prompt, options).tokens;
  EXPECT_EQ(std::count(changed.begin(), changed.end(), greedy[0]), 0);
  // Without a sampler of its own a request draws as the engine would.
  options = {};
  options.sampling.temperature = 1;
  options.sampling.seed = 5;
  const auto drawn = answer_to(model, prompt, options);
  options.logprobs = true;
  options.top_logprobs = 2;
  const auto engine = answer_to(model, prompt, options);
  options.logits_processors = {[](auto, auto) {}};
  const auto caller = answer_to(model, prompt, options);
  EXPECT_EQ(engine.tokens, drawn.tokens);
  EXPECT_EQ(caller.tokens, drawn.tokens);
  EXPECT_EQ(caller.last.logprob, engine.last.logprob);
  EXPECT_EQ(caller.last.top_logprobs.size(), 2u);
  EXPECT_EQ(
      caller.last.top_logprobs[1].logprob, engine.last.top_logprobs[1].logprob
  );
}

TEST(Generate, WhatACallbackThrowsComesOutAndEndsIt) {
  Model model = load_tiny();
  GenerateOptions options;
  options.sampler = [](auto) -> Token { throw std::runtime_error("mine"); };
  TextStream stream = stream_generate(model, some_tokens(20), options);
  EXPECT_THROW(stream.next(), std::runtime_error);
  EXPECT_FALSE(stream.next());
  for (float value : {-INFINITY, INFINITY, NAN}) {
    GenerateOptions filled;
    filled.logits_processors = {[&](auto, auto logits) {
      std::fill(logits.begin(), logits.end(), value);
    }};
    EXPECT_EQ(
        refusal([&] { generate(model, some_tokens(20), filled); }).first,
        Code::kInvalidArgument
    );
  }
  options.sampler = [](auto) { return Token{96}; };
  auto [code, text] =
      refusal([&] { generate(model, some_tokens(20), options); });
  EXPECT_EQ(code, Code::kInvalidArgument);
  EXPECT_NE(text.find("token 96"), std::string::npos) << text;
  EXPECT_EQ(answer_to(model, some_tokens(20)).tokens.size(), 12u);
}

TEST(Generate, SaysWhatProcessorsLeftThatCannotBeChosenFrom) {
  Model model = load_tiny();
  GenerateOptions options;
  const auto left = [&](LogitsProcessor processor) {
    options.logits_processors = {std::move(processor)};
    return refusal([&] { generate(model, some_tokens(20), options); });
  };
  const auto fill = [](float value) {
    return [value](auto, std::span<float> logits) {
      std::fill(logits.begin(), logits.end(), value);
    };
  };
  for (const bool own_sampler : {false, true}) {
    if (own_sampler) options.sampler = most_likely;
    auto [code, text] = left(fill(-INFINITY));
    EXPECT_EQ(code, Code::kInvalidArgument);
    EXPECT_NE(text.find("leave no token"), std::string::npos) << text;
    std::tie(code, text) = left([](auto, auto logits) { logits[5] = NAN; });
    EXPECT_EQ(code, Code::kInvalidArgument);
    EXPECT_NE(text.find("not a number"), std::string::npos) << text;
  }
  // One is enough.
  options.sampler = {};
  options.max_tokens = 3;
  options.logits_processors = {[](auto, std::span<float> logits) {
    std::fill(logits.begin(), logits.end(), -INFINITY);
    logits[20] = -50;
  }};
  EXPECT_EQ(
      answer_to(model, some_tokens(20), options).tokens,
      std::vector<Token>(3, 20)
  );
}

TEST(Generate, RefusesBadInput) {
  Model model = load_tiny();
  const auto prompt = some_tokens(20);
  const auto code_of = [&](const Prompt& prompt, GenerateOptions options) {
    return refusal([&] { generate(model, prompt, options); }).first;
  };
  EXPECT_EQ(code_of(std::vector<Token>{}, {}), Code::kInvalidArgument);
  EXPECT_EQ(code_of(std::vector<Token>{1, -1}, {}), Code::kInvalidArgument);
  EXPECT_EQ(code_of(some_tokens(512), {}), Code::kInvalidArgument);
  EXPECT_EQ(code_of(Prompt(prompt, 21), {}), Code::kInvalidArgument);
  EXPECT_EQ(code_of("\xff", {}), Code::kInvalidArgument);
  GenerateOptions options;
  options.stop = {""};
  EXPECT_EQ(code_of(prompt, options), Code::kInvalidArgument);
  options = {};
  options.top_logprobs = 1;
  EXPECT_EQ(code_of(prompt, options), Code::kInvalidArgument);
  options = {};
  options.sampling.temperature = -1;
  EXPECT_EQ(code_of(prompt, options), Code::kInvalidArgument);
  options = {};
  options.max_tokens = 0;
  EXPECT_EQ(code_of(prompt, options), Code::kInvalidArgument);
  EXPECT_EQ(
      refusal([] { load("/no/such/model.gguf"); }).first, Code::kNotFound
  );
}

TEST(Generate, IsCutByItsCancelToken) {
  Model model = load_tiny();
  std::stop_source source;
  GenerateOptions options;
  options.max_tokens = 480;
  options.cancel = source.get_token();
  options.sampler = [&](std::span<const float> logprobs) {
    source.request_stop();
    return most_likely(logprobs);
  };
  const Answer answer = answer_to(model, some_tokens(20), options);
  EXPECT_EQ(answer.last.finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(answer.last.token, kUnknownToken);
  EXPECT_LT(answer.last.generation_tokens, 480u);
}

TEST(Generate, CanBeWaitedFor) {
  Model model = load_tiny();
  TextStream stream =
      stream_generate(model, some_tokens(20), {.max_tokens = 2});
  for (int i = 0; i < 2; ++i) {
    while (!stream.wait_for(std::chrono::milliseconds(20))) {
    }
    EXPECT_TRUE(stream.next());
  }
  EXPECT_TRUE(stream.wait_for(std::chrono::milliseconds(0)));
  EXPECT_FALSE(stream.next());
}

TEST(Generate, RunsOnManyThreadsAsAlone) {
  Model model = load_tiny();
  std::vector<std::vector<Token>> alone;
  for (Token i = 0; i < 6; ++i) {
    alone.push_back(answer_to(model, some_tokens(60, i)).tokens);
  }
  std::vector<std::vector<Token>> together(alone.size());
  std::vector<std::thread> threads;
  for (Token i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      GenerateOptions options;
      if (i % 2 == 1) options.sampler = most_likely;
      together[i] = answer_to(model, some_tokens(60, i), options).tokens;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(together, alone);
}

TEST(Generate, EndsWithItsModel) {
  Model model = load_tiny();
  GenerateOptions options{.max_tokens = 200};
  options.sampler = most_likely;  // so it cannot end unless we go on
  TextStream running = stream_generate(model, some_tokens(300), options);
  EXPECT_TRUE(running.next());
  EXPECT_TRUE(model.close());
  StepOutput last;
  while (auto output = running.next()) last = *output;
  EXPECT_EQ(last.finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(
      refusal([&] { generate(model, some_tokens(20)); }).first,
      Code::kUnavailable
  );
}

TEST(GenerateStep, GivesTheLogitsThatGenerateUses) {
  Model model = load_tiny();
  const auto prompt = some_tokens(300);
  const auto greedy = answer_to(model, prompt).tokens;
  LogitsStream steps = generate_step(model, prompt);
  std::vector<Token> tokens;
  std::shared_ptr<std::vector<float>> first = steps.logits();
  EXPECT_EQ(first->size(), model.info().vocab_size);
  const std::vector<float> kept = *first;
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(steps.logits(), steps.logits());
    tokens.push_back(most_likely(*steps.logits()));
    steps.accept(tokens.back());
  }
  EXPECT_EQ(tokens, greedy);
  EXPECT_EQ(*first, kept);
  EXPECT_EQ(steps.tokens(), joined(prompt, greedy));
  EXPECT_EQ(steps.cache_history().tokens().size(), 311u);

  LogitsStream again =
      generate_step(model, prompt, {.cache_history = steps.cache_history()});
  EXPECT_EQ(*again.logits(), kept);
  EXPECT_EQ(again.cached_tokens(), 299u);
  // Two that wait for their tokens do not hinder others.
  EXPECT_EQ(answer_to(model, prompt).tokens, greedy);
}

TEST(Generate, EndsBeforeAStopText) {
  Model model = load_tiny();
  const auto prompt = some_tokens(20);
  GenerateOptions options;
  options.max_tokens = 40;
  options.sampling.logit_bias = endless();
  const std::string whole = generate(model, prompt, options).text;
  ASSERT_GT(whole.size(), 12u);
  const std::string stop = whole.substr(8, 3);
  options.stop = {stop};
  options.return_cache = true;
  const StepOutput cut = generate(model, prompt, options);
  EXPECT_EQ(cut.text, whole.substr(0, whole.find(stop)));
  EXPECT_EQ(cut.finish_reason, FinishReason::kStop);
  // The token that completed the stop text may have been read already.
  const std::size_t all = prompt.size() + cut.generation_tokens;
  EXPECT_GE(cut.cache_history->size(), all - 1);
  EXPECT_LE(cut.cache_history->size(), all);
  // Nobody is asked for a token once the answer is over.
  std::size_t calls = 0;
  options.logits_processors = {[&](auto, auto) {
    if (++calls > cut.generation_tokens) throw std::runtime_error("over");
  }};
  EXPECT_EQ(generate(model, prompt, options).text, cut.text);
}

TEST(Generate, TellsHowFarThePromptIsRead) {
  Model model = load_tiny();
  std::vector<std::size_t> done;
  GenerateOptions options;
  options.max_tokens = 2;
  options.prompt_progress_callback = [&](std::size_t read, std::size_t all) {
    EXPECT_EQ(all, 400u);
    done.push_back(read);
  };
  generate(model, some_tokens(400), options);
  ASSERT_FALSE(done.empty());
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_EQ(done.back(), 400u);
}

TEST(Generate, ASystemPromptIsKeptAsOne) {
  Folder folder;
  LoadOptions options;
  options.threads = 2;
  options.prompt_cache_dir = folder / "cache";
  const auto system = some_tokens(280);
  {
    Model model = load_tiny(options);
    generate(
        model,
        Prompt(joined(system, some_tokens(40, 3)), 280),
        {.max_tokens = 4}
    );
    EXPECT_TRUE(model.close());
    EXPECT_TRUE(model.close());
  }
  Model model = load_tiny(options);
  const Answer warm = answer_to(model, joined(system, some_tokens(40, 4)));
  EXPECT_GE(warm.last.cached_tokens, 256u);
}

TEST(Load, RefusesWhatHasNoMeaningOrNoEffect) {
  const auto refused = [](auto change) {
    LoadOptions options;
    change(options);
    return refusal([&] { load(tiny_model(), options); }).first;
  };
  const auto wrong = Code::kInvalidArgument;
  EXPECT_EQ(refused([](auto& o) { o.threads = -1; }), wrong);
  EXPECT_EQ(
      refused([](auto& o) { o.prompt_cache_ttl = std::chrono::seconds(-1); }),
      wrong
  );
  EXPECT_EQ(refused([](auto& o) { o.prompt_cache_disk_bytes = 1; }), wrong);
  EXPECT_EQ(refused([](auto& o) { o.prompt_cache_daily_writes = 1; }), wrong);
  EXPECT_EQ(
      refused([](auto& o) {
        o.prompt_cache_dir = "/nowhere";
        o.prompt_cache_disk_bytes = 0;
      }),
      wrong
  );
  EXPECT_EQ(
      refused([](auto& o) {
        o.backend = Backend::kMlx;
        o.activations = Activations::kInt8;
      }),
      wrong
  );
}

TEST(Text, GoesToTokensAndBack) {
  Model model = load_tiny();
  EXPECT_EQ(
      refusal([&] { model.encode("\xff"); }).first, Code::kInvalidArgument
  );
  EXPECT_EQ(
      refusal([&] { model.decode(std::vector<Token>{96}); }).first,
      Code::kInvalidArgument
  );
  EXPECT_FALSE(model.decode(some_tokens(5)).empty());
}

TEST(GenerateStep, ManyMayWait) {
  Model model = load_tiny();
  const auto prompt = some_tokens(20);
  std::vector<LogitsStream> streams;
  for (int i = 0; i < 40; ++i) {
    streams.push_back(generate_step(model, prompt));
    EXPECT_EQ(streams.back().logits()->size(), model.info().vocab_size);
  }
  EXPECT_EQ(answer_to(model, prompt).tokens.size(), 12u);
}

TEST(GenerateStep, EndsAtItsLimit) {
  Model model = load_tiny();
  LogitsStream steps = generate_step(model, some_tokens(20), {.max_tokens = 1});
  EXPECT_EQ(
      refusal([&] { steps.cache_history(); }).first, Code::kInvalidArgument
  );
  steps.logits();
  EXPECT_EQ(steps.cache_history().size(), 20u);
  steps.accept(20);
  EXPECT_EQ(refusal([&] { steps.logits(); }).first, Code::kInvalidArgument);
}

TEST(GenerateStep, EndsWhereTheContextDoes) {
  Model model = load_tiny();
  LogitsStream steps = generate_step(model, some_tokens(510));
  for (int i = 0; i < 2; ++i) {
    steps.logits();
    steps.accept(20);
  }
  EXPECT_EQ(refusal([&] { steps.logits(); }).first, Code::kInvalidArgument);
}

TEST(GenerateStep, RefusesWhatCannotBe) {
  Model model = load_tiny();
  LogitsStream steps = generate_step(model, some_tokens(20));
  EXPECT_EQ(refusal([&] { steps.accept(20); }).first, Code::kInvalidArgument);
  steps.logits();
  EXPECT_EQ(refusal([&] { steps.accept(96); }).first, Code::kInvalidArgument);
  std::stop_source source;
  LogitsStream cut =
      generate_step(model, some_tokens(20), {.cancel = source.get_token()});
  cut.logits();
  cut.accept(20);
  source.request_stop();
  // Either the logits were there first, or they never come.
  try {
    cut.logits();
    cut.accept(20);
    cut.logits();
    ADD_FAILURE() << "was not cut";
  } catch (const Exception& error) {
    EXPECT_EQ(error.code(), Code::kCancelled);
  }
}

}  // namespace
}  // namespace afterglow
