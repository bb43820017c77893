#include "model/divergence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "model/test_model.h"
#include "model/test_runner.h"

namespace afterglow {
namespace {

DivergenceOptions smollm2(std::vector<Activations> modes, std::size_t window) {
  return {
      .model = test_model_path(),
      .modes = std::move(modes),
      .window = window,
      .threads = 2};
}

TextToTokens take(std::vector<Token> tokens) {
  return [tokens](const TokenizerSource&) { return tokens; };
}

/// 8,000 tokens of tests/data/long_english.txt.
std::vector<Token> long_english() {
  return read_test_json("tests/data/long_english.ids.json");
}

const TextProgress kSilent = [](std::size_t, std::size_t) {};

TEST(DivergenceRealModel, RoundedActivationsHardlyChangeWhatIsPredicted) {
  auto tokens = long_english();
  ASSERT_EQ(tokens.size(), 8000u);
  // All of them takes minutes.
  if (std::getenv("AFTERGLOW_LONG_TESTS") == nullptr) tokens.resize(1000);
  const auto report = measure_divergence(
      smollm2({Activations::kInt16, Activations::kInt8}, 1000),
      take(tokens),
      kSilent
  );
  ASSERT_TRUE(report) << report.error().message;
  const ModeQuality& exact = report->exact;
  std::printf("f32: perplexity %.4f\n", exact.perplexity);
  for (const ModeQuality& mode : report->modes) {
    std::printf(
        "%s: perplexity %+.4f %%, KL %.2e (largest %.2e), same first %.2f %%\n",
        to_string(mode.mode),
        100 * mode.perplexity_change(exact),
        mode.mean_divergence,
        mode.largest_divergence,
        100 * mode.same_first
    );
  }
  const ModeQuality& int16 = report->modes[0];
  const ModeQuality& int8 = report->modes[1];
  EXPECT_LT(int16.mean_divergence, 1e-5);
  EXPECT_LT(std::fabs(int16.perplexity_change(exact)), 1e-4);
  EXPECT_LT(int8.mean_divergence, 3e-3);
  EXPECT_LT(std::fabs(int8.perplexity_change(exact)), 5e-3);
  // Else something was not measured at all.
  EXPECT_GT(int16.mean_divergence, 0);
  EXPECT_GT(int8.mean_divergence, int16.mean_divergence);
  EXPECT_GT(int16.same_first, int8.same_first);
}

/// The same by definition, from the logits of one step.
TEST(DivergenceRealModel, PerplexityAndDivergenceAreThoseOfTheLogits) {
  auto tokens = long_english();
  tokens.resize(9);
  const auto report = measure_divergence(
      smollm2({Activations::kInt8}, 6), take(tokens), kSilent
  );
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->windows, 2u);
  EXPECT_EQ(report->positions, 5u + 2u);

  const auto distributions = [&tokens](Activations mode) {
    TestRunner runner(test_model_path(), mode, 2);
    const std::size_t vocab = runner.model().vocab_size;
    std::vector<std::vector<double>> rows;
    for (const auto& [at, count] : {std::pair{0, 5}, {6, 2}}) {
      const auto kv = runner.new_kv();
      const auto window = std::span(tokens).subspan(at, count);
      const auto logits = runner.step({{kv.get(), window}});
      for (std::size_t i = 0; i < window.size(); ++i) {
        double sum = 0;
        std::vector<double> row;
        for (std::size_t v = 0; v < vocab; ++v) {
          row.push_back(std::exp(double(logits[i * vocab + v])));
          sum += row.back();
        }
        for (double& p : row) p /= sum;
        rows.push_back(std::move(row));
      }
    }
    return rows;
  };
  const auto exact = distributions(Activations::kF32);
  const auto int8 = distributions(Activations::kInt8);
  const std::size_t next[] = {1, 2, 3, 4, 5, 7, 8};
  double log_exact = 0, log_int8 = 0, divergence = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    log_exact += std::log(exact[i][tokens[next[i]]]) / 7;
    log_int8 += std::log(int8[i][tokens[next[i]]]) / 7;
    for (std::size_t v = 0; v < exact[i].size(); ++v) {
      divergence += exact[i][v] * std::log(exact[i][v] / int8[i][v]) / 7;
    }
  }
  EXPECT_NEAR(report->exact.perplexity / std::exp(-log_exact), 1, 1e-9);
  EXPECT_NEAR(report->modes[0].perplexity / std::exp(-log_int8), 1, 1e-9);
  EXPECT_NEAR(report->modes[0].mean_divergence / divergence, 1, 1e-6);
}

TEST(DivergenceRealModel, TextsAndWindowsThatSayNothingAreRefused) {
  const auto code = [](std::size_t window, std::vector<Token> tokens) {
    const auto report = measure_divergence(
        smollm2({}, window), take(std::move(tokens)), kSilent
    );
    return report ? "" : report.error().message;
  };
  EXPECT_NE(code(1, {5, 6, 7}).find("window of 1"), std::string::npos);
  EXPECT_NE(code(1 << 20, {5, 6, 7}).find("window of"), std::string::npos);
  EXPECT_NE(code(16, {5}).find("has 1 tokens"), std::string::npos);
}

}  // namespace
}  // namespace afterglow
