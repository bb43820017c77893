#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

#include "model/golden.h"
#include "model/test_model.h"
#include "model/test_runner.h"

namespace afterglow {
namespace {

std::vector<Token> english() {
  return read_test_json("tests/data/english.ids.json");
}

TEST(SmolLm2RealModel, LogitsInF32ModeAreMlxLms) {
  const Golden golden("smollm2.safetensors");
  const auto tokens = golden.values<Token>("tokens");
  const auto ids = golden.values<std::int32_t>("top.ids");
  const auto top = golden.values<float>("top.logits");
  const auto last = golden.values<float>("last.logits");
  ASSERT_EQ(tokens.size(), 64u);
  TestRunner runner(test_model_path(), Activations::kF32, 2);
  const auto kv = runner.new_kv();
  const auto logits = runner.step({{kv.get(), tokens}});
  const std::size_t vocab = runner.model().vocab_size;
  ASSERT_EQ(last.size(), vocab);
  const std::size_t count = ids.size() / tokens.size();
  double largest = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const float ours = logits[i / count * vocab + ids[i]];
    largest = std::max(largest, std::fabs(double(ours) - top[i]));
  }
  for (std::size_t i = 0; i < vocab; ++i) {
    const float ours = logits[(tokens.size() - 1) * vocab + i];
    largest = std::max(largest, std::fabs(double(ours) - last[i]));
  }
  std::printf("largest difference of logits: %.2e\n", largest);
  EXPECT_LT(largest, 2e-3);
}

TEST(SmolLm2RealModel, GreedyTokensInF32ModeAreMlxLms) {
  const auto runs = read_test_json("tests/parity/golden/smollm2_greedy.json");
  ASSERT_GE(runs.size(), 8u);
  TestRunner runner(test_model_path(), Activations::kF32, 2);
  // All at once: a ragged batch, one token each after the prompts.
  std::vector<std::unique_ptr<KvState>> states;
  std::vector<std::vector<Token>> inputs, outputs(runs.size());
  for (const auto& run : runs) {
    states.push_back(runner.new_kv());
    inputs.push_back(run["prompt"]);
  }
  const std::size_t vocab = runner.model().vocab_size;
  for (std::size_t step = 0; step < runs[0]["tokens"].size(); ++step) {
    std::vector<TestRunner::Piece> pieces;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      pieces.push_back({states[i].get(), inputs[i]});
    }
    const auto logits = runner.step(pieces, false);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const auto row = logits.begin() + i * vocab;
      const auto best = std::max_element(row, row + vocab) - row;
      outputs[i].push_back(static_cast<Token>(best));
      inputs[i] = {static_cast<Token>(best)};
    }
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    EXPECT_EQ(outputs[i], runs[i]["tokens"].get<std::vector<Token>>())
        << "prompt " << i;
  }
}

// Design section 1.2: what else is computed, how and where must not show.
class Invariance {
 public:
  Invariance(Activations mode, std::size_t length)
      : mode_(mode), text_(english()), length_(length), random_(7) {}

  void check() {
    auto runner = TestRunner(test_model_path(), mode_, 1);
    const auto kv = runner.new_kv();
    wanted_ = runner.step({{kv.get(), main_tokens()}});
    vocab_ = runner.model().vocab_size;
    for (std::size_t i = 0; i * kPageTokens < length_; ++i) {
      pages_.push_back(kv->seal(i));
    }
    for (int threads = 1; threads <= 4; ++threads) {
      SCOPED_TRACE(std::to_string(threads) + " threads");
      check_with(threads);
    }
  }

 private:
  std::span<const Token> main_tokens() const {
    return std::span(text_).first(length_);
  }

  void expect_same(
      const std::vector<float>& logits,
      std::size_t row,
      std::size_t position,
      std::size_t count,
      const char* what
  ) {
    const bool same = std::memcmp(
                          &logits[row * vocab_],
                          &wanted_[position * vocab_],
                          count * vocab_ * sizeof(float)
                      ) == 0;
    EXPECT_TRUE(same) << what << " changes the logits within positions "
                      << position << " to " << position + count;
  }

  std::size_t draw(std::size_t low, std::size_t high) {
    return std::uniform_int_distribution<std::size_t>(low, high)(random_);
  }

  // Random chunks beside a mate that starts anywhere and has random chunks of
  // its own; then the sequence once more behind a restored prefix.
  void check_with(int threads) {
    TestRunner runner(test_model_path(), mode_, threads);
    const auto kv = runner.new_kv();
    const auto mate = runner.new_kv();
    const auto mate_tokens = std::span(text_).subspan(length_, 150);
    while (kv->length() < length_) {
      const std::size_t at = kv->length();
      const std::size_t count =
          std::min(draw(1, draw(0, 2) == 0 ? 5 : 130), length_ - at);
      const std::size_t mate_left = mate_tokens.size() - mate->length();
      const std::size_t mate_count = std::min(draw(0, 40), mate_left);
      std::vector<TestRunner::Piece> pieces;
      const auto mate_piece = mate_tokens.subspan(mate->length(), mate_count);
      const bool mate_first = draw(0, 1) == 0;
      if (mate_first && mate_count > 0) {
        pieces.push_back({mate.get(), mate_piece});
      }
      pieces.push_back({kv.get(), main_tokens().subspan(at, count)});
      if (!mate_first && mate_count > 0) {
        pieces.push_back({mate.get(), mate_piece});
      }
      const auto logits = runner.step(pieces);
      expect_same(
          logits, mate_first ? mate_count : 0, at, count, "chunks and mates"
      );
    }
    for (const std::size_t prefix :
         {kPageTokens - 1, kPageTokens, draw(1, length_ - 20)}) {
      if (prefix + 1 > length_) {
        continue;
      }
      const auto restored = runner.new_kv();
      const std::size_t pages = pages_for(prefix);
      restored->restore(std::span(pages_).first(pages), prefix);
      const std::size_t count = std::min<std::size_t>(20, length_ - prefix);
      const auto logits =
          runner.step({{restored.get(), main_tokens().subspan(prefix, count)}});
      expect_same(logits, 0, prefix, count, "a restored prefix");
    }
  }

  Activations mode_;
  std::vector<Token> text_;
  std::size_t length_;
  std::mt19937 random_;
  std::size_t vocab_ = 0;
  std::vector<float> wanted_;
  std::vector<PagePtr> pages_;
};

TEST(SmolLm2RealModel, Int16LogitsDependOnTheTokensOnly) {
  Invariance(Activations::kInt16, 300).check();
}

TEST(SmolLm2RealModel, Int8LogitsDependOnTheTokensOnly) {
  Invariance(Activations::kInt8, 270).check();
}

TEST(SmolLm2RealModel, F32LogitsDependOnTheTokensOnly) {
  Invariance(Activations::kF32, 60).check();
}

}  // namespace
}  // namespace afterglow
