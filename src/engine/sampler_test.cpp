#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "engine/random.h"

namespace afterglow {
namespace {

// The set of tokens drawn over many positions.
std::set<Token> support(
    const SamplingParams& params, const std::vector<float>& logits
) {
  Sampler sampler(params);
  std::set<Token> seen;
  for (std::uint64_t position = 0; position < 3000; ++position) {
    seen.insert(sampler.sample(logits, position));
  }
  return seen;
}

std::vector<float> logs(std::vector<double> probabilities) {
  std::vector<float> result;
  for (double p : probabilities) {
    result.push_back(static_cast<float>(std::log(p)));
  }
  return result;
}

SamplingParams hot() {
  SamplingParams params;
  params.temperature = 1;
  params.seed = 7;
  return params;
}

// Known answers of the reference implementation (Random123, kat_vectors).
TEST(Philox, KnownAnswers) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(
      philox({0, 0, 0, 0}, {0, 0}),
      (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8})
  );
  EXPECT_EQ(
      philox(
          {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
          {0xffffffff, 0xffffffff}
      ),
      (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd})
  );
}

TEST(Sampler, GreedyTakesTheLowestOfEqualTokens) {
  Sampler sampler{SamplingParams{}};
  std::vector<float> logits{0, 2, 2, 1};
  EXPECT_EQ(sampler.sample(logits, 0), 1);
}

TEST(Sampler, DrawsDependOnSeedAndPositionOnly) {
  std::vector<float> logits = logs({0.25, 0.25, 0.25, 0.25});
  Sampler forward(hot());
  Sampler backward(hot());
  std::vector<Token> a(100), b(100);
  for (int i = 0; i < 100; ++i) {
    a[i] = forward.sample(logits, i);
  }
  for (int i = 99; i >= 0; --i) {
    b[i] = backward.sample(logits, i);
  }
  EXPECT_EQ(a, b);
  SamplingParams other = hot();
  other.seed = 8;
  Sampler different(other);
  std::vector<Token> c(100);
  for (int i = 0; i < 100; ++i) {
    c[i] = different.sample(logits, i);
  }
  EXPECT_NE(a, c);
}

TEST(Sampler, TopPKeepsTheSmallestSetThatReachesTheMass) {
  SamplingParams params = hot();
  std::vector<float> logits = logs({0.1, 0.5, 0.3, 0.1});
  params.top_p = 0.45;
  EXPECT_EQ(support(params, logits), (std::set<Token>{1}));
  params.top_p = 0.7;
  EXPECT_EQ(support(params, logits), (std::set<Token>{1, 2}));
  params.top_p = 0.85;  // the two last are equally likely: both stay
  EXPECT_EQ(support(params, logits), (std::set<Token>{0, 1, 2, 3}));
}

TEST(Sampler, MinPDropsTokensFarBelowTheTop) {
  SamplingParams params = hot();
  std::vector<float> logits = logs({0.6, 0.25, 0.1, 0.05});
  params.min_p = 0.3;
  EXPECT_EQ(support(params, logits), (std::set<Token>{0, 1}));
  params.min_tokens_to_keep = 3;
  EXPECT_EQ(support(params, logits), (std::set<Token>{0, 1, 2}));
}

TEST(Sampler, TopKKeepsKTokens) {
  SamplingParams params = hot();
  params.top_k = 2;
  EXPECT_EQ(
      support(params, logs({0.2, 0.4, 0.1, 0.3})), (std::set<Token>{1, 3})
  );
}

// The most likely tokens that a filter must keep, found by sorting all.
std::set<Token> most_likely(const std::vector<float>& logits, auto wanted) {
  std::vector<Token> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](Token a, Token b) {
    return logits[a] > logits[b];
  });
  double total = 0;
  for (float logit : logits) {
    total += std::exp(double{logit});
  }
  std::set<Token> kept;
  double mass = 0;
  for (Token token : order) {
    if (!wanted(kept.size(), mass / total, logits[token] - logits[order[0]])) {
      break;
    }
    kept.insert(token);
    mass += std::exp(double{logits[token]});
  }
  return kept;
}

// Steep, flat and two-humped vocabularies: what is kept must not depend on
// how far below the top the sampler looks first.
TEST(Sampler, FiltersOfALargeVocabularyKeepWhatSortingKeeps) {
  constexpr std::size_t kVocab = 5000;
  auto shape = [](double spread, double gap) {
    std::vector<float> logits(kVocab);
    for (std::size_t i = 0; i < kVocab; ++i) {
      std::size_t rank = i * 2741 % kVocab;
      double depth = spread * std::log1p(static_cast<double>(rank));
      logits[i] = static_cast<float>(-depth - (rank > 0 ? gap : 0));
    }
    return logits;
  };
  for (const std::vector<float>& logits :
       {shape(3, 0), shape(1.5, 0), shape(2, 14), shape(2, 60)}) {
    SamplingParams params = hot();
    params.temperature = 20;  // every kept token is drawn soon
    params.top_k = 12;
    EXPECT_EQ(
        support(params, logits),
        most_likely(logits, [](auto n, double, double) { return n < 12; })
    );
    params.top_k = 0;
    params.top_p = 0.9;
    EXPECT_EQ(
        support(params, logits),
        most_likely(
            logits, [](auto, double mass, double) { return mass < 0.9; }
        )
    );
    params.top_p = 1;
    params.min_p = 1e-7;
    params.min_tokens_to_keep = 5;
    params.temperature = 100;
    std::set<Token> kept =
        most_likely(logits, [](auto n, double, double depth) {
          return n < 5 || depth >= std::log(1e-7);
        });
    for (Token token : support(params, logits)) {
      EXPECT_TRUE(kept.contains(token)) << token;
    }
  }
}

TEST(Sampler, XtcLeavesTheLeastLikelyOfTheTopChoices) {
  SamplingParams params = hot();
  params.xtc_probability = 1;
  params.xtc_threshold = 0.15;
  std::vector<float> logits = logs({0.5, 0.25, 0.2, 0.05});
  EXPECT_EQ(support(params, logits), (std::set<Token>{2, 3}));
  params.xtc_special_tokens = {0};
  EXPECT_EQ(support(params, logits), (std::set<Token>{0, 2, 3}));
  params.xtc_probability = 0;
  EXPECT_EQ(support(params, logits), (std::set<Token>{0, 1, 2, 3}));
}

TEST(Sampler, PenaltiesAndBias) {
  SamplingParams params;
  params.logit_bias = {{3, 1.5f}};
  params.repetition_penalty = 2;
  params.repetition_context_size = 3;
  std::vector<float> logits{4, -4, 1, 0};
  std::vector<Token> history{2, 0, 0, 1};  // 2 is out of reach
  Sampler(params).process(logits, history);
  EXPECT_EQ(logits, (std::vector<float>{2, -8, 1, 1.5}));

  SamplingParams additive;
  additive.presence_penalty = 0.5;
  additive.frequency_penalty = 0.25;
  std::vector<float> flat(4, 0);
  Sampler(additive).process(flat, history);
  EXPECT_EQ(flat, (std::vector<float>{-1, -0.75, -0.75, 0}));
}

TEST(Sampler, AContextOfZeroIsTheWholeHistory) {
  SamplingParams params;
  params.presence_penalty = 1;
  params.presence_context_size = 0;
  std::vector<Token> history(100, 2);
  history[0] = 1;
  std::vector<float> logits(4, 0);
  Sampler(params).process(logits, history);
  EXPECT_EQ(logits, (std::vector<float>{0, -1, -1, 0}));
}

TEST(Sampler, UnknownTokensAreNotPenalized) {
  SamplingParams params;
  params.repetition_penalty = 2;
  params.presence_penalty = 1;
  params.frequency_penalty = 1;
  std::vector<float> logits(3, 4);
  std::vector<Token> history{kUnknownToken, 1, kUnknownToken, 1};
  Sampler(params).process(logits, history);
  EXPECT_EQ(logits, (std::vector<float>{4, -1, 4}));
}

// Valid, and beyond what float holds.
TEST(Sampler, ExtremeParametersDrawSomething) {
  auto draw = [](auto change) {
    SamplingParams params = hot();
    change(params);
    EXPECT_TRUE(validate(params, 4).ok());
    std::vector<float> logits{5, -4, 1, 0};
    std::vector<Token> history{0, 1, 2, 3};
    Sampler sampler(params);
    sampler.process(logits, history);
    for (float logit : logits) {
      EXPECT_TRUE(std::isfinite(logit));
    }
    return sampler.sample(logits, 0);
  };
  EXPECT_EQ(draw([](auto& p) { p.temperature = 1e-310; }), 0);
  EXPECT_EQ(draw([](auto& p) { p.temperature = 1e-39; }), 0);
  draw([](auto& p) { p.temperature = 1e308; });
  EXPECT_EQ(draw([](auto& p) { p.repetition_penalty = 1e-300; }), 0);
  draw([](auto& p) { p.repetition_penalty = 1e300; });
  draw([](auto& p) { p.presence_penalty = 1e300; });
  draw([](auto& p) { p.frequency_penalty = -1e300; });
  EXPECT_EQ(draw([](auto& p) { p.logit_bias = {{2, 3e38f}, {2, 3e38f}}; }), 2);
}

TEST(Sampler, ExcludedTokensAreNeverDrawn) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  SamplingParams params = hot();
  params.temperature = 1e38;
  params.logit_bias = {{1, 5.0f}};
  params.presence_penalty = 2;
  std::vector<float> logits{0, -kInfinity, 1, -kInfinity};
  Sampler(params).process(logits, std::vector<Token>{0, 1, 3});
  EXPECT_EQ(support(params, logits), (std::set<Token>{0, 2}));
  params.top_k = 3;
  EXPECT_EQ(support(params, logits), (std::set<Token>{0, 2}));
  params.top_p = 0.9999;
  params.min_p = 1e-9;
  params.min_tokens_to_keep = 4;
  EXPECT_EQ(support(params, logits), (std::set<Token>{0, 2}));
}

TEST(Sampler, ParametersOutOfRangeAreNamed) {
  auto message = [](auto change) {
    SamplingParams params;
    change(params);
    Status status = validate(params, 100);
    if (status.ok()) {
      return std::string();
    }
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
    return status.error().message;
  };
  auto field = [&](auto change) {
    std::string text = message(change);
    return text.substr(0, text.find(' '));
  };
  EXPECT_EQ(message([](auto&) {}), "");
  EXPECT_EQ(
      message([](auto& p) { p.top_p = 1.5; }), "top_p must be between 0 and 1"
  );
  EXPECT_EQ(field([](auto& p) { p.temperature = -1; }), "temperature");
  EXPECT_EQ(field([](auto& p) { p.temperature = NAN; }), "temperature");
  EXPECT_EQ(field([](auto& p) { p.min_p = -0.1; }), "min_p");
  EXPECT_EQ(
      field([](auto& p) { p.min_tokens_to_keep = 0; }), "min_tokens_to_keep"
  );
  EXPECT_EQ(
      field([](auto& p) { p.min_tokens_to_keep = 101; }), "min_tokens_to_keep"
  );
  EXPECT_EQ(field([](auto& p) { p.min_tokens_to_keep = 100; }), "");
  EXPECT_EQ(field([](auto& p) { p.top_k = 100; }), "top_k");
  EXPECT_EQ(field([](auto& p) { p.top_k = 99; }), "");
  EXPECT_EQ(field([](auto& p) { p.xtc_probability = 1.1; }), "xtc_probability");
  EXPECT_EQ(field([](auto& p) { p.xtc_threshold = 0.6; }), "xtc_threshold");
  EXPECT_EQ(
      field([](auto& p) { p.repetition_penalty = -1; }), "repetition_penalty"
  );
  EXPECT_EQ(
      field([](auto& p) { p.presence_penalty = INFINITY; }), "presence_penalty"
  );
  EXPECT_EQ(
      field([](auto& p) { p.frequency_penalty = NAN; }), "frequency_penalty"
  );
  EXPECT_EQ(field([](auto& p) { p.logit_bias = {{100, 1.0f}}; }), "logit_bias");
  EXPECT_EQ(field([](auto& p) { p.logit_bias = {{-1, 1.0f}}; }), "logit_bias");
  EXPECT_EQ(
      field([](auto& p) {
        p.logit_bias = {{1, INFINITY}};
      }),
      "logit_bias"
  );
}

TEST(Logprobs, AreNormalizedAndOrdered) {
  std::vector<float> logits = logs({0.1, 0.6, 0.3});
  auto top = top_logprobs(logits, log_sum_exp(logits), 2);
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[0].token, 1);
  EXPECT_NEAR(top[0].logprob, std::log(0.6), 1e-6);
  EXPECT_EQ(top[1].token, 2);
  EXPECT_NEAR(top[1].logprob, std::log(0.3), 1e-6);
}

}  // namespace
}  // namespace afterglow
