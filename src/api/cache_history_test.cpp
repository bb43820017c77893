#include "afterglow/cache_history.h"

#include <fstream>

#include "api/history_state.h"
#include "api/testing.h"

namespace afterglow {
namespace {

GenerateOptions with(const CacheHistory& history) {
  GenerateOptions options;
  options.cache_history = history;
  return options;
}

TEST(CacheHistories, AnIdenticalPromptComputesOneToken) {
  Model model = load_tiny();
  const auto prompt = some_tokens(300);
  const Answer first = answer_to(model, prompt);
  EXPECT_EQ(first.last.cached_tokens, 0u);
  const Answer second =
      answer_to(model, prompt, with(*first.last.cache_history));
  EXPECT_EQ(second.last.prompt_tokens, 300u);
  EXPECT_EQ(second.last.cached_tokens, 299u);
  EXPECT_EQ(second.tokens, first.tokens);
}

TEST(CacheHistories, HoldAllButTheLastToken) {
  Model model = load_tiny();
  const auto prompt = some_tokens(40);
  const Answer answer = answer_to(model, prompt);
  ASSERT_EQ(answer.last.finish_reason, FinishReason::kLength);
  auto all = joined(prompt, answer.tokens);
  all.pop_back();
  EXPECT_EQ(answer.last.cache_history->tokens(), all);
  EXPECT_EQ(answer.last.cache_history->size(), all.size());
  EXPECT_GT(answer.last.cache_history->bytes(), 0u);
}

TEST(CacheHistories, TheSharedPrefixIsFoundToTheToken) {
  Model model = load_tiny();
  const auto prompt = some_tokens(300);
  const CacheHistory history = *answer_to(model, prompt).last.cache_history;
  for (std::size_t shared : {1, 17, 255, 256, 257, 299}) {
    std::vector<Token> other(prompt.begin(), prompt.begin() + shared);
    other.push_back(prompt[shared] == 50 ? 51 : 50);
    other = joined(other, some_tokens(20, 3));
    const Answer warm = answer_to(model, other, with(history));
    EXPECT_EQ(warm.last.cached_tokens, shared);
    EXPECT_EQ(warm.tokens, answer_to(model, other).tokens) << shared;
  }
}

TEST(CacheHistories, ContinuedTwiceGiveIndependentContinuations) {
  Model model = load_tiny();
  const auto prompt = some_tokens(280);
  const CacheHistory history = *answer_to(model, prompt).last.cache_history;
  const auto tokens = history.tokens();
  const auto one = joined(prompt, some_tokens(30, 1));
  const auto other = joined(prompt, some_tokens(30, 2));
  const Answer first = answer_to(model, one, with(history));
  const Answer second = answer_to(model, other, with(history));
  EXPECT_EQ(first.tokens, answer_to(model, one).tokens);
  EXPECT_EQ(second.tokens, answer_to(model, other).tokens);
  EXPECT_EQ(history.tokens(), tokens);
  EXPECT_EQ(answer_to(model, one, with(history)).tokens, first.tokens);
}

TEST(CacheHistories, OfASteppingStreamEndWhereTheyWereGivenOut) {
  Model model = load_tiny();
  const auto prompt = some_tokens(250);
  GenerateOptions options;
  options.max_tokens = 12;
  options.return_cache = true;
  options.sampling.logit_bias = endless();
  std::vector<CacheHistory> histories;
  std::vector<Token> tokens = prompt;
  for (const StepOutput& output : stream_generate(model, prompt, options)) {
    histories.push_back(*output.cache_history);
    tokens.push_back(output.token);
  }
  ASSERT_EQ(histories.size(), 12u);
  for (std::size_t i = 0; i < histories.size(); ++i) {
    const auto held = histories[i].tokens();
    ASSERT_EQ(held.size(), prompt.size() + i);
    EXPECT_TRUE(std::equal(held.begin(), held.end(), tokens.begin()));
    const Answer again = answer_to(model, tokens, with(histories[i]));
    EXPECT_EQ(again.last.cached_tokens, held.size());
  }
}

TEST(CacheHistories, OfAStreamThatWasLeftAreThere) {
  Model model = load_tiny();
  const auto prompt = some_tokens(100);
  std::optional<CacheHistory> history;
  {
    GenerateOptions options;
    options.max_tokens = 400;
    options.return_cache = true;
    for (const StepOutput& output : stream_generate(model, prompt, options)) {
      history = output.cache_history;
      if (output.generation_tokens == 3) break;
    }
  }
  EXPECT_EQ(history->size(), 102u);
  const Answer warm = answer_to(model, prompt, with(*history));
  EXPECT_EQ(warm.last.cached_tokens, 99u);
}

TEST(CacheHistories, OutliveTheirModel) {
  const auto prompt = some_tokens(70);
  std::optional<CacheHistory> history;
  std::vector<Token> tokens;
  {
    const Answer answer = answer_to(load_tiny(), prompt);
    history = answer.last.cache_history;
    tokens = answer.tokens;
  }
  const Answer warm = answer_to(load_tiny(), prompt, with(*history));
  EXPECT_EQ(warm.last.cached_tokens, 69u);
  EXPECT_EQ(warm.tokens, tokens);
}

TEST(CacheHistories, BecomePartOfThePromptCache) {
  const auto prompt = some_tokens(300);
  const CacheHistory history =
      *answer_to(load_tiny(), prompt).last.cache_history;
  LoadOptions options;
  options.threads = 2;
  Model model = load_tiny(options);
  answer_to(model, prompt, with(history));
  EXPECT_EQ(answer_to(model, prompt).last.cached_tokens, 299u);
}

TEST(CacheHistories, TheLongerOfHistoryAndPromptCacheIsTaken) {
  LoadOptions options;
  options.threads = 2;
  Model model = load_tiny(options);
  const auto prompt = some_tokens(300);
  const std::vector<Token> start(prompt.begin(), prompt.begin() + 50);
  const CacheHistory shorter = *answer_to(model, start).last.cache_history;
  answer_to(model, prompt);
  EXPECT_EQ(answer_to(model, prompt, with(shorter)).last.cached_tokens, 299u);
}

// As a file of mlx_lm gives it: KV of nobody knows which tokens.
CacheHistory untold(const CacheHistory& history) {
  KvHistory copy = *history.state()->get();
  copy.origin = {};
  std::fill(copy.tokens.begin(), copy.tokens.end(), kUnknownToken);
  const std::size_t length = copy.tokens.size();
  return CacheHistory(std::make_shared<const HistoryState>(
      std::make_shared<const KvHistory>(std::move(copy)), length
  ));
}

TEST(CacheHistories, OfUnknownTokensAreGoneOnFrom) {
  LoadOptions options;
  options.threads = 2;
  Model model = load_tiny(options);
  const auto start = some_tokens(270);
  const auto more = some_tokens(9, 3);
  LogitsStream steps = generate_step(model, start);
  steps.logits();
  const CacheHistory known = steps.cache_history();
  const Answer expected = answer_to(model, joined(start, more));

  const Answer first = answer_to(model, more, with(untold(known)));
  EXPECT_EQ(first.tokens, expected.tokens);
  EXPECT_EQ(first.last.prompt_tokens, 279u);
  EXPECT_EQ(first.last.cached_tokens, 270u);
  std::vector<Token> held(270, kUnknownToken);
  held = joined(joined(held, more), first.tokens);
  held.pop_back();
  EXPECT_EQ(first.last.cache_history->tokens(), held);

  // Once more, after a file: what follows goes behind all of it.
  Folder folder;
  save_cache(folder / "a.safetensors", *first.last.cache_history);
  const CacheHistory loaded = load_cache(folder / "a.safetensors").first;
  EXPECT_EQ(loaded.tokens(), held);
  const Answer second = answer_to(model, more, with(loaded));
  EXPECT_EQ(second.last.cached_tokens, held.size());
  auto all = joined(joined(start, more), first.tokens);
  all.pop_back();
  EXPECT_EQ(second.tokens, answer_to(model, joined(all, more)).tokens);

  const auto [code, text] =
      refusal([&] { answer_to(model, {}, with(untold(known))); });
  EXPECT_EQ(code, Code::kInvalidArgument);
  EXPECT_NE(text.find("[generate] nothing follows"), std::string::npos) << text;
}

TEST(CacheHistories, OfUnknownTokensLeaveNoTraceInThePromptCache) {
  LoadOptions options;
  options.threads = 2;
  Model model = load_tiny(options);
  const auto start = some_tokens(270);
  const CacheHistory known = *answer_to(load_tiny(), start).last.cache_history;
  answer_to(model, some_tokens(30, 3), with(untold(known)));
  EXPECT_EQ(
      answer_to(model, joined(start, some_tokens(3))).last.cached_tokens, 0u
  );
}

TEST(CacheHistories, OfOtherModelsAreRefused) {
  const auto prompt = some_tokens(40);
  const CacheHistory history =
      *answer_to(load_tiny(), prompt).last.cache_history;
  LoadOptions options = plain_options();
  options.activations = Activations::kInt8;
  auto [code, text] =
      refusal([&] { answer_to(load_tiny(options), prompt, with(history)); });
  EXPECT_EQ(code, Code::kInvalidArgument);
  EXPECT_NE(text.find("other activations"), std::string::npos) << text;

  const std::string other =
      std::string(AFTERGLOW_SOURCE_DIR) + "/tests/parity/golden/tiny-k.gguf";
  std::tie(code, text) = refusal([&] {
    answer_to(load(other, plain_options()), prompt, with(history));
  });
  EXPECT_EQ(code, Code::kInvalidArgument);
  EXPECT_NE(text.find("another model's"), std::string::npos) << text;

  load_tiny().check(history);
  EXPECT_EQ(
      refusal([&] { load(other, plain_options()).check(history); }).second, text
  );
}

struct Computing {
  const char* name;
  Backend backend;
  std::optional<Activations> activations;
};

class CacheFiles : public testing::TestWithParam<Computing> {
 protected:
  Model load_model() {
    LoadOptions options = plain_options();
    options.backend = GetParam().backend;
    options.activations = GetParam().activations;
    return load_tiny(options);
  }
  Folder folder_;
};

TEST_P(CacheFiles, GoOnWhereTheyWereSaved) {
  const auto prompt = some_tokens(300);
  std::vector<Token> tokens;
  const std::string path = folder_ / "a.safetensors";
  {
    const Answer answer = answer_to(load_model(), prompt);
    tokens = answer.tokens;
    save_cache(
        path, *answer.last.cache_history, {{"model_id", "My random model"}}
    );
  }
  const auto [history, metadata] = load_cache(path);
  EXPECT_EQ(metadata, (Metadata{{"model_id", "My random model"}}));
  EXPECT_EQ(history.size(), 311u);
  const Answer warm = answer_to(load_model(), prompt, with(history));
  EXPECT_EQ(warm.last.cached_tokens, 299u);
  EXPECT_EQ(warm.tokens, tokens);
  // What was continued can be saved in its turn, at any length.
  save_cache(path, *warm.last.cache_history);
  EXPECT_EQ(load_cache(path).first.tokens(), history.tokens());
}

std::vector<Computing> all_that_compute() {
  std::vector<Computing> all = {
      {"int16", Backend::kCpu, Activations::kInt16},
      {"f32", Backend::kCpu, Activations::kF32}};
  if (AFTERGLOW_WITH_MLX) {
    all.push_back({"mlx", Backend::kMlx, std::nullopt});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(
    Modes,
    CacheFiles,
    testing::ValuesIn(all_that_compute()),
    [](const auto& info) { return info.param.name; }
);

TEST(CacheFileErrors, NameTheFileAndWhatIsWrong) {
  Folder folder;
  const std::string path = folder / "a.safetensors";
  auto [code, text] = refusal([&] { load_cache(path); });
  EXPECT_EQ(code, Code::kNotFound);
  EXPECT_NE(text.find(path), std::string::npos) << text;

  const CacheHistory history =
      *answer_to(load_tiny(), some_tokens(30)).last.cache_history;
  save_cache(path, history);
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-5000, std::ios::end);
    file.put('\x55');
  }
  std::tie(code, text) = refusal([&] { load_cache(path); });
  EXPECT_EQ(code, Code::kCorrupt);
  EXPECT_NE(text.find("sum"), std::string::npos) << text;

  std::tie(code, text) = refusal([&] {
    save_cache(path, history, {{"afterglow.sum", "0"}});
  });
  EXPECT_EQ(code, Code::kInvalidArgument);
  std::tie(code, text) = refusal([&] {
    save_cache(path, history, {{"name", "\xff"}});
  });
  EXPECT_EQ(code, Code::kInvalidArgument);
  std::tie(code, text) =
      refusal([&] { save_cache(folder / "no/such/folder/a", history); });
  EXPECT_EQ(code, Code::kNotFound) << text;
}

}  // namespace
}  // namespace afterglow
