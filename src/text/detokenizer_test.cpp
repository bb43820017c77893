#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "text/testing.h"

namespace afterglow {
namespace {

using testing::golden;
using testing::golden_text;
using testing::Json;

bool starts_inside_character(const std::string& text) {
  return !text.empty() && (text[0] & 0xC0) == 0x80;
}

/// All outputs joined; fails when one is cut inside a character.
std::string streamed(
    const Tokenizer& tokenizer, const std::vector<Token>& ids, bool skip
) {
  Detokenizer stream(tokenizer, skip);
  std::string all;
  for (const Token id : ids) {
    const std::string part = stream.push(id);
    EXPECT_FALSE(starts_inside_character(part));
    all += part;
  }
  const std::string rest = stream.flush();
  EXPECT_FALSE(starts_inside_character(rest));
  return all + rest;
}

std::vector<std::pair<std::string, Tokenizer>> tokenizers() {
  std::vector<std::pair<std::string, Tokenizer>> all;
  for (const char* name :
       {"tiny_bpe.tokenizer.json", "tiny_spm.tokenizer.json"}) {
    all.emplace_back(name, *Tokenizer::from_json(golden_text(name), ""));
  }
  all.emplace_back("llama", *Tokenizer::from_gguf(testing::tiny_llama()));
  all.emplace_back("gpt2", *Tokenizer::from_gguf(testing::tiny_gpt2("smollm")));
  return all;
}

TEST(Detokenizer, JoinedOutputEqualsDecodeOfTheCorpus) {
  const std::vector<std::string> corpus = golden("tokens.json")["corpus"];
  for (const auto& [name, tokenizer] : tokenizers()) {
    for (const auto& text : corpus) {
      const auto ids = tokenizer.encode(text, true, true);
      ASSERT_TRUE(ids.ok());
      for (const bool skip : {false, true}) {
        EXPECT_EQ(streamed(tokenizer, *ids, skip), tokenizer.decode(*ids, skip))
            << name << ": " << text;
      }
    }
  }
}

TEST(Detokenizer, JoinedOutputEqualsDecodeOfRandomTokens) {
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  for (const auto& [name, tokenizer] : tokenizers()) {
    std::uniform_int_distribution<Token> any(
        -1, static_cast<Token>(tokenizer.vocab_size())
    );
    for (int round = 0; round < 200; ++round) {
      std::vector<Token> ids(1 + round % 40);
      for (auto& id : ids) {
        id = any(random);
      }
      for (const bool skip : {false, true}) {
        EXPECT_EQ(streamed(tokenizer, ids, skip), tokenizer.decode(ids, skip))
            << name << " seed " << kSeed << " round " << round;
      }
    }
  }
}

TEST(Detokenizer, ACharacterComesWithItsLastByte) {
  auto tokenizer = *Tokenizer::from_gguf(testing::tiny_llama());
  const std::string smile = "\xF0\x9F\x98\x80";
  Detokenizer stream(tokenizer);
  std::vector<std::string> parts;
  for (const unsigned char byte : smile) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    const auto id = tokenizer.token_to_id(name);
    ASSERT_TRUE(id.has_value()) << name;
    parts.push_back(stream.push(*id));
  }
  EXPECT_EQ(parts, (std::vector<std::string>{"", "", "", smile}));
  EXPECT_EQ(stream.flush(), "");
}

TEST(Detokenizer, AnUnfinishedCharacterIsReplacedAtTheEnd) {
  auto tokenizer = *Tokenizer::from_gguf(testing::tiny_llama());
  Detokenizer stream(tokenizer);
  EXPECT_EQ(stream.push(*tokenizer.token_to_id("<0xE4>")), "");
  EXPECT_EQ(stream.push(*tokenizer.token_to_id("<0xBD>")), "");
  EXPECT_EQ(stream.flush(), "\xEF\xBF\xBD");
  // The next text loses its own leading space.
  EXPECT_EQ(stream.push(*tokenizer.token_to_id("\u2581the")), "the");
}

TEST(Detokenizer, OnlyTheFirstSpaceOfATextIsDropped) {
  auto tokenizer = *Tokenizer::from_gguf(testing::tiny_llama());
  const Token the = *tokenizer.token_to_id("\u2581the");
  Detokenizer stream(tokenizer);
  EXPECT_EQ(stream.push(*tokenizer.bos()), "");
  EXPECT_EQ(stream.push(the), "the");
  EXPECT_EQ(stream.push(the), " the");
}

TEST(Detokenizer, OutlivesItsTokenizer) {
  std::optional<Tokenizer> tokenizer =
      *Tokenizer::from_gguf(testing::tiny_gpt2("smollm"));
  const auto ids = *tokenizer->encode("The page", false, false);
  Detokenizer stream(*tokenizer);
  tokenizer.reset();
  std::string text;
  for (const Token id : ids) {
    text += stream.push(id);
  }
  EXPECT_EQ(text + stream.flush(), "The page");
}

}  // namespace
}  // namespace afterglow
