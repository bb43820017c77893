#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "text/testing.h"

namespace afterglow {
namespace {

using testing::golden;
using testing::golden_text;
using testing::Json;
using testing::tiny_gpt2;
using testing::tiny_llama;

Tokenizer from_json(const std::string& name, std::string_view config = "") {
  auto tokenizer = Tokenizer::from_json(golden_text(name), config);
  CHECK(tokenizer.ok(), tokenizer.error().message);
  return *std::move(tokenizer);
}

Tokenizer from_gguf(const GgufVocab& vocab) {
  auto tokenizer = Tokenizer::from_gguf(vocab);
  CHECK(tokenizer.ok(), tokenizer.error().message);
  return *std::move(tokenizer);
}

void expect_like_golden(const Tokenizer& tokenizer, const std::string& set) {
  const Json all = golden("tokens.json");
  const Json& wanted = all["sets"][set];
  for (std::size_t i = 0; i < all["corpus"].size(); ++i) {
    const std::string text = all["corpus"][i];
    const auto ids = [&](bool add, bool parse) {
      auto result = tokenizer.encode(text, add, parse);
      CHECK(result.ok(), result.error().message);
      return *std::move(result);
    };
    using Ids = std::vector<Token>;
    SCOPED_TRACE(set + " text " + std::to_string(i) + ": " + text);
    EXPECT_EQ(ids(false, false), wanted["plain"][i].get<Ids>());
    EXPECT_EQ(ids(false, true), wanted["parsed"][i].get<Ids>());
    EXPECT_EQ(ids(true, true), wanted["added"][i].get<Ids>());
    const Ids parsed = wanted["parsed"][i];
    EXPECT_EQ(tokenizer.decode(parsed, false), wanted["decoded"][i]);
    EXPECT_EQ(tokenizer.decode(parsed, true), wanted["skipped"][i]);
  }
}

TEST(Tokenizer, ByteLevelJsonGivesTheIdsOfHuggingFace) {
  expect_like_golden(from_json("tiny_bpe.tokenizer.json"), "tiny_bpe");
}

TEST(Tokenizer, MetaspaceJsonGivesTheIdsOfHuggingFace) {
  expect_like_golden(from_json("tiny_spm.tokenizer.json"), "tiny_spm_json");
}

TEST(Tokenizer, SentencePieceScoresGiveTheIdsOfHuggingFace) {
  expect_like_golden(from_gguf(tiny_llama()), "tiny_spm");
}

TEST(Tokenizer, EachPreTokenizerNameSplitsAsItsFamilyDoes) {
  const Json all = golden("tokens.json");
  ASSERT_GE(all["pre"].size(), 12U);
  for (const auto& [name, ids] : all["pre"].items()) {
    const auto tokenizer = from_gguf(tiny_gpt2(name));
    const auto got =
        tokenizer.encode(all["pre_text"].get<std::string>(), false, false);
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(*got, ids.get<std::vector<Token>>()) << name;
  }
}

TEST(Tokenizer, AnUnknownPreTokenizerIsNamed) {
  const auto result = Tokenizer::from_gguf(tiny_gpt2("no-such-thing"));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::kUnsupported);
  EXPECT_NE(result.error().message.find("no-such-thing"), std::string::npos);
}

TEST(Tokenizer, AnUnknownModelIsNamed) {
  GgufVocab vocab = tiny_gpt2("gpt-2");
  vocab.model = "rwkv";
  const auto result = Tokenizer::from_gguf(vocab);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::kUnsupported);
  EXPECT_NE(result.error().message.find("rwkv"), std::string::npos);
}

TEST(Tokenizer, ArraysThatContradictEachOtherAreCorrupt) {
  struct Case {
    const char* what;
    GgufVocab vocab;
  };
  std::vector<Case> cases;
  cases.push_back({"no tokens", {.model = "gpt2", .pre = "gpt-2"}});
  cases.push_back({"too few types", tiny_gpt2("gpt-2")});
  cases.back().vocab.types.pop_back();
  cases.push_back({"too few scores", tiny_llama()});
  cases.back().vocab.scores.pop_back();
  cases.push_back({"a score that is no number", tiny_llama()});
  cases.back().vocab.scores.back() = std::nanf("");
  cases.push_back({"a merge of one token", tiny_gpt2("gpt-2")});
  cases.back().vocab.merges.push_back("alone");
  cases.push_back({"a merge of unknown tokens", tiny_gpt2("gpt-2")});
  cases.back().vocab.merges.push_back("qqqq zzzz");
  cases.push_back({"bos outside the vocabulary", tiny_gpt2("gpt-2")});
  cases.back().vocab.bos = 1 << 20;
  cases.push_back({"add_bos without bos", tiny_gpt2("gpt-2")});
  cases.back().vocab.add_bos = true;
  cases.push_back({"a token that is no UTF-8", tiny_gpt2("gpt-2")});
  cases.back().vocab.tokens.back() = "\xff";
  for (const auto& [what, vocab] : cases) {
    const auto result = Tokenizer::from_gguf(vocab);
    ASSERT_FALSE(result.ok()) << what;
    EXPECT_EQ(result.error().code, Code::kCorrupt) << what;
  }
}

TEST(Tokenizer, WrongJsonIsCorrupt) {
  const std::string good = golden_text("tiny_bpe.tokenizer.json");
  for (const std::string& json :
       {std::string(),
        std::string("{}"),
        std::string("[1"),
        good.substr(0, good.size() / 2)}) {
    const auto result = Tokenizer::from_json(json, "");
    ASSERT_FALSE(result.ok()) << json.substr(0, 20);
  }
  const auto result = Tokenizer::from_json(good, "{");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::kCorrupt);
}

TEST(Tokenizer, ConfigNamesTheSpecialTokens) {
  const auto tokenizer = from_json(
      "tiny_bpe.tokenizer.json",
      R"({"bos_token": "<|im_start|>",
          "eos_token": {"content": "<|im_end|>", "special": true},
          "pad_token": null,
          "added_tokens_decoder": {
            "642": {"content": "<extra>", "special": true}}})"
  );
  EXPECT_EQ(tokenizer.bos(), 1);
  EXPECT_EQ(tokenizer.eos(), 2);
  EXPECT_EQ(tokenizer.pad(), std::nullopt);
  EXPECT_EQ(tokenizer.token_to_id("<extra>"), 642);
  EXPECT_TRUE(tokenizer.is_special(642));
  EXPECT_EQ(tokenizer.vocab_size(), 643U);
}

TEST(Tokenizer, ATokenThatTheVocabularyLacksHasNoRole) {
  const auto tokenizer =
      from_json("tiny_bpe.tokenizer.json", R"({"bos_token": "<nowhere>"})");
  EXPECT_EQ(tokenizer.bos(), std::nullopt);
}

TEST(Tokenizer, AnAddedTokenOutOfOrderIsCorrupt) {
  const auto result = Tokenizer::from_json(
      golden_text("tiny_bpe.tokenizer.json"),
      R"({"added_tokens_decoder": {"9": {"content": "<extra>"}}})"
  );
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::kCorrupt);
  EXPECT_NE(result.error().message.find("<extra>"), std::string::npos);
}

TEST(Tokenizer, InvalidUtf8IsRefused) {
  const auto tokenizer = from_json("tiny_bpe.tokenizer.json");
  for (const std::string_view text :
       {"ab\xff", "\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\x80"}) {
    const auto result = tokenizer.encode(text, false, false);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, Code::kInvalidArgument);
    EXPECT_NE(result.error().message.find("UTF-8"), std::string::npos);
  }
}

TEST(Tokenizer, FarTooLongTextIsNotReadToItsEnd) {
  const auto tokenizer = from_gguf(tiny_gpt2("smollm"));
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "ab \u00e9";
  const auto all = tokenizer.encode(text, false, true);
  ASSERT_TRUE(all.ok());
  const auto in_part = tokenizer.encode(text, false, true, 100);
  ASSERT_TRUE(in_part.ok());
  EXPECT_GT(in_part->size(), 100U);
  EXPECT_LT(in_part->size(), all->size() / 2);
  // As many as it has are all of them.
  EXPECT_EQ(*tokenizer.encode(text, false, true, all->size()), *all);
  EXPECT_EQ(tokenizer.encode("", false, true, 0)->size(), 0U);
}

TEST(Tokenizer, TextThatNormalizingShortensIsReadToItsEnd) {
  const auto tokenizer = from_gguf(tiny_gpt2("qwen2"));
  const auto one = tokenizer.encode("a\u0308", false, true);
  const auto composed = tokenizer.encode("\u00e4", false, true);
  ASSERT_TRUE(one.ok() && composed.ok());
  EXPECT_EQ(*one, *composed);
  for (std::size_t most = 1; most < 3; ++most) {
    EXPECT_EQ(*tokenizer.encode("a\u0308", false, true, most), *one) << most;
  }
}

TEST(Tokenizer, SpecialTextOfUsersStaysText) {
  const auto tokenizer = from_gguf(tiny_gpt2("smollm"));
  const std::string text = "x<|im_end|>y";
  const Token end = *tokenizer.token_to_id("<|im_end|>");
  const auto plain = tokenizer.encode(text, false, false);
  const auto parsed = tokenizer.encode(text, false, true);
  ASSERT_TRUE(plain.ok() && parsed.ok());
  EXPECT_EQ(std::count(plain->begin(), plain->end(), end), 0);
  EXPECT_EQ(std::count(parsed->begin(), parsed->end(), end), 1);
  EXPECT_EQ(tokenizer.decode(*plain, true), text);
  EXPECT_EQ(tokenizer.decode(*parsed, true), "xy");
  EXPECT_EQ(tokenizer.decode(*parsed, false), text);
}

TEST(Tokenizer, IdsOutsideTheVocabularyStandForNothing) {
  const auto tokenizer = from_gguf(tiny_gpt2("smollm"));
  const std::vector<Token> ids = {-1, 1 << 30, -2147483647 - 1};
  EXPECT_EQ(tokenizer.decode(ids, false), "");
  EXPECT_EQ(tokenizer.piece(-1), "");
  EXPECT_FALSE(tokenizer.is_special(1 << 30));
  EXPECT_EQ(tokenizer.token_to_id("no such token"), std::nullopt);
}

TEST(Tokenizer, ManyThreadsGetTheSameIds) {
  const auto tokenizer = from_json("tiny_bpe.tokenizer.json");
  const Json all = golden("tokens.json");
  const std::vector<std::string> corpus = all["corpus"];
  const auto& wanted = all["sets"]["tiny_bpe"]["parsed"];
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (auto& count : wrong) {
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < corpus.size(); ++i) {
        const auto ids = tokenizer.encode(corpus[i], false, true);
        count += !ids.ok() || *ids != wanted[i].get<std::vector<Token>>();
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace afterglow
