#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <vector>

#include "engine/sampler.h"

// How often each token is drawn. Seeds are fixed, so that a test either
// always passes or never.

namespace afterglow {
namespace {

constexpr std::size_t kDraws = 40000;

/// What a chi-square statistic exceeds by chance once in 10,000 times.
/// Source: Wilson and Hilferty, "The distribution of chi-square", 1931.
double chi_square_limit(std::size_t degrees) {
  constexpr double kQuantile = 3.719;  // of the normal distribution
  auto n = static_cast<double>(degrees);
  return n * std::pow(1 - 2 / (9 * n) + kQuantile * std::sqrt(2 / (9 * n)), 3);
}

/// How far counts are from what probabilities let expect, as a part of the
/// limit: above 1 is not by chance. A token of probability 0 must not occur.
double misfit(
    const std::vector<std::size_t>& counts,
    const std::vector<double>& probabilities
) {
  double draws = 0;
  for (std::size_t count : counts) {
    draws += static_cast<double>(count);
  }
  double total = 0;
  std::size_t possible = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    double expected = draws * probabilities[i];
    if (expected == 0) {
      EXPECT_EQ(counts[i], 0u) << "token " << i;
      continue;
    }
    EXPECT_GE(expected, 5) << "too few draws for token " << i;
    ++possible;
    total += std::pow(static_cast<double>(counts[i]) - expected, 2) / expected;
  }
  return possible > 1 ? total / chi_square_limit(possible - 1) : 0;
}

std::vector<std::size_t> count(
    std::size_t tokens, const std::function<std::size_t(std::size_t)>& draw
) {
  std::vector<std::size_t> counts(tokens);
  for (std::size_t i = 0; i < kDraws; ++i) {
    ++counts.at(draw(i));
  }
  return counts;
}

std::vector<float> logs(const std::vector<double>& probabilities) {
  std::vector<float> result;
  for (double p : probabilities) {
    result.push_back(static_cast<float>(std::log(p)));
  }
  return result;
}

const std::vector<double> kGiven{
    0.25, 0.014, 0.4, 0.1, 0.036, 0.13, 0.01, 0.06};

/// The given ones that are kept, at a temperature.
std::vector<double> expected(
    std::initializer_list<std::size_t> kept, double temperature
) {
  std::vector<double> result(kGiven.size());
  double total = 0;
  for (std::size_t i : kept) {
    result[i] = std::pow(kGiven[i], 1 / temperature);
    total += result[i];
  }
  for (double& p : result) {
    p /= total;
  }
  return result;
}

SamplingParams params_at(double temperature) {
  SamplingParams params;
  params.temperature = temperature;
  params.seed = 20;
  return params;
}

/// Of the given tokens at growing positions.
double misfit_of(
    const SamplingParams& params, const std::vector<double>& probabilities
) {
  Sampler sampler(params);
  std::vector<float> logits = logs(kGiven);
  auto counts = count(kGiven.size(), [&](std::size_t position) {
    return static_cast<std::size_t>(sampler.sample(logits, position));
  });
  return misfit(counts, probabilities);
}

class SamplerDistribution : public testing::TestWithParam<double> {};

INSTANTIATE_TEST_SUITE_P(
    Temperatures, SamplerDistribution, testing::Values(0.5, 1.0, 2.0)
);

TEST_P(SamplerDistribution, FollowsTheTemperature) {
  double temperature = GetParam();
  SamplingParams params = params_at(temperature);
  EXPECT_LT(
      misfit_of(params, expected({0, 1, 2, 3, 4, 5, 6, 7}, temperature)), 1
  );
}

TEST_P(SamplerDistribution, FiltersKeepTheProportions) {
  double temperature = GetParam();
  SamplingParams top_p = params_at(temperature);
  top_p.top_p = 0.85;
  EXPECT_LT(misfit_of(top_p, expected({0, 2, 3, 5}, temperature)), 1);

  SamplingParams min_p = params_at(temperature);
  min_p.min_p = 0.12;
  EXPECT_LT(misfit_of(min_p, expected({0, 2, 3, 5, 7}, temperature)), 1);
  min_p.min_tokens_to_keep = 6;
  EXPECT_LT(misfit_of(min_p, expected({0, 2, 3, 4, 5, 7}, temperature)), 1);

  SamplingParams top_k = params_at(temperature);
  top_k.top_k = 3;
  EXPECT_LT(misfit_of(top_k, expected({0, 2, 5}, temperature)), 1);
}

TEST_P(SamplerDistribution, FiltersTogether) {
  double temperature = GetParam();
  SamplingParams params = params_at(temperature);
  params.top_p = 0.95;  // all but 1 and 6 are left
  params.min_p = 0.2;   // and of them 0, 2, 3, 5
  params.xtc_probability = 1;
  params.xtc_threshold = 0.2;  // of what is left: 2 goes
  params.top_k = 2;            // 3 goes
  EXPECT_LT(misfit_of(params, expected({0, 5}, temperature)), 1);
}

// A coin that hung together with the draw would show: the mixture would not
// be that of the two distributions.
TEST_P(SamplerDistribution, XtcStrikesWithItsProbability) {
  double temperature = GetParam();
  std::vector<double> whole = expected({0, 1, 2, 3, 4, 5, 6, 7}, temperature);
  std::vector<double> without_top = expected({1, 3, 4, 5, 6, 7}, temperature);
  for (double probability : {0.0, 0.3, 0.5, 1.0}) {
    SamplingParams params = params_at(temperature);
    params.xtc_threshold = 0.12;
    params.xtc_probability = probability;
    std::vector<double> mixed;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      mixed.push_back(
          probability * without_top[i] + (1 - probability) * whole[i]
      );
    }
    EXPECT_LT(misfit_of(params, mixed), 1) << probability;
  }
}

TEST(SamplerDraws, AWrongTemperatureWouldShow) {
  std::vector<double> wrong = expected({0, 1, 2, 3, 4, 5, 6, 7}, 1.05);
  EXPECT_GT(misfit_of(params_at(1), wrong), 1);
}

TEST(SamplerDraws, SeedsAreIndependent) {
  std::vector<float> logits = logs(kGiven);
  auto counts = count(kGiven.size(), [&](std::size_t seed) {
    SamplingParams params = params_at(1);
    params.seed = seed;
    return static_cast<std::size_t>(Sampler(params).sample(logits, 100));
  });
  EXPECT_LT(misfit(counts, kGiven), 1);
}

TEST(SamplerDraws, NeighboursAreIndependent) {
  std::vector<double> probabilities{0.5, 0.3, 0.15, 0.05};
  std::vector<float> logits = logs(probabilities);
  std::vector<double> of_pairs;
  for (double p : probabilities) {
    for (double q : probabilities) {
      of_pairs.push_back(p * q);
    }
  }
  Sampler sampler(params_at(1));
  auto positions = count(of_pairs.size(), [&](std::size_t i) {
    Token first = sampler.sample(logits, 2 * i);
    return static_cast<std::size_t>(
        first * 4 + sampler.sample(logits, 2 * i + 1)
    );
  });
  EXPECT_LT(misfit(positions, of_pairs), 1);
  auto seeds = count(of_pairs.size(), [&](std::size_t i) {
    SamplingParams params = params_at(1);
    params.seed = 2 * i;
    Token first = Sampler(params).sample(logits, 7);
    params.seed = 2 * i + 1;
    return static_cast<std::size_t>(
        first * 4 + Sampler(params).sample(logits, 7)
    );
  });
  EXPECT_LT(misfit(seeds, of_pairs), 1);
}

// Tokens of a large vocabulary, gathered in bins.
TEST(SamplerDraws, AllOfALargeVocabularyIsReached) {
  constexpr std::size_t kVocab = 4000;
  constexpr std::size_t kBins = 50;
  std::vector<float> logits(kVocab);
  std::vector<double> of_bins(kBins);
  double total = 0;
  for (std::size_t i = 0; i < kVocab; ++i) {
    auto rank = static_cast<double>(i * 1237 % kVocab);
    logits[i] = static_cast<float>(-std::log(20 + rank));
    double p = std::exp(double{logits[i]});
    of_bins[i * kBins / kVocab] += p;
    total += p;
  }
  for (double& p : of_bins) {
    p /= total;
  }
  Sampler sampler(params_at(1));
  auto counts = count(kBins, [&](std::size_t position) {
    return static_cast<std::size_t>(sampler.sample(logits, position)) * kBins /
           kVocab;
  });
  EXPECT_LT(misfit(counts, of_bins), 1);
}

}  // namespace
}  // namespace afterglow
