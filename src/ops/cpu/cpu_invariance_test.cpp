#include <gtest/gtest.h>

#include <cstring>
#include <ostream>
#include <tuple>
#include <vector>

#include "kernels/dispatch/dispatch.h"
#include "kernels/testing/guarded.h"
#include "ops/cpu/cpu_test_model.h"

namespace afterglow {

// For the names of tests.
void PrintTo(const Target& target, std::ostream* out) {
  *out << target.kernels->name;
}

namespace {

using test::Random;
using test::random_tokens;
using test::same_bits;
using test::TinyModel;

constexpr std::size_t kVocab = TinyModel::kVocab;
// Two full pages and a part of a third.
constexpr std::size_t kTokens = 2 * kPageTokens + 37;

constexpr Activations kModes[] = {
    Activations::kInt16, Activations::kInt8, Activations::kF32};

std::span<const Token> part(
    const std::vector<Token>& tokens, std::size_t first, std::size_t count
) {
  return {tokens.data() + first, count};
}

void append(std::vector<float>& all, const std::vector<float>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

// Logits of all positions, fed in chunks of random sizes.
std::vector<float> in_chunks(
    TinyModel& model,
    KvState& kv,
    const std::vector<Token>& tokens,
    std::size_t most,
    Random& random
) {
  std::vector<float> logits;
  while (kv.length() < tokens.size()) {
    std::size_t left = tokens.size() - kv.length();
    std::size_t count = std::min(left, 1 + random.below(most));
    append(logits, model.feed(kv, part(tokens, kv.length(), count)));
  }
  return logits;
}

// An activation mode and a target.
class Invariance
    : public testing::TestWithParam<std::tuple<Activations, Target>> {
 protected:
  void SetUp() override {
    if (!target().runs_here) {
      GTEST_SKIP() << "this processor can't run " << target().kernels->name;
    }
  }
  const Target& target() const { return std::get<1>(GetParam()); }
  TinyModel model(ThreadPool& pool) {
    return TinyModel(pool, std::get<0>(GetParam()), *target().kernels);
  }

  Random random_{17};
  std::vector<Token> tokens_ = random_tokens(kTokens, random_);
};

TEST_P(Invariance, one_go_equals_token_by_token_equals_random_chunks) {
  ThreadPool pool(2);
  TinyModel model = this->model(pool);
  auto whole = model.new_kv();
  std::vector<float> want = model.feed(*whole, tokens_);
  for (std::size_t most : {1, 5, 40, 400}) {
    auto kv = model.new_kv();
    EXPECT_TRUE(same_bits(want, in_chunks(model, *kv, tokens_, most, random_)))
        << "chunks of up to " << most;
  }
}

TEST_P(Invariance, any_number_of_threads) {
  std::vector<float> want;
  for (int threads : {1, 2, 3, 4}) {
    ThreadPool pool(threads);
    TinyModel model = this->model(pool);
    auto kv = model.new_kv();
    std::vector<float> got = in_chunks(model, *kv, tokens_, 200, random_);
    if (threads == 1) {
      want = got;
    }
    EXPECT_TRUE(same_bits(want, got)) << threads << " threads";
  }
}

// Sequences of other lengths, some decoding, some prefilling, in one batch.
TEST_P(Invariance, batch_mates_do_not_matter) {
  ThreadPool pool(2);
  TinyModel model = this->model(pool);
  constexpr std::size_t kMates = 5;
  std::vector<std::vector<Token>> tokens;
  std::vector<std::vector<float>> want(kMates);
  std::vector<std::vector<float>> got(kMates);
  std::vector<std::unique_ptr<KvState>> kvs;
  for (std::size_t i = 0; i < kMates; ++i) {
    tokens.push_back(random_tokens(100 + 110 * i, random_));
    auto kv = model.new_kv();
    want[i] = model.feed(*kv, tokens[i]);
    kvs.push_back(model.new_kv());
  }
  while (true) {
    std::vector<Token> step;
    std::vector<Span> spans;
    std::vector<std::size_t> who;
    for (std::size_t i = 0; i < kMates; ++i) {
      std::size_t done = kvs[i]->length();
      std::size_t left = tokens[i].size() - done;
      if (left == 0 || random_.below(4) == 0) {
        continue;
      }
      std::size_t count = 1;
      if (random_.below(2) == 0) {
        count = std::min(left, 1 + random_.below(90));
      }
      spans.push_back({step.size(), count, kvs[i].get()});
      who.push_back(i);
      for (std::size_t t = 0; t < count; ++t) {
        step.push_back(tokens[i][done + t]);
      }
    }
    bool all_done = true;
    for (std::size_t i = 0; i < kMates; ++i) {
      all_done = all_done && kvs[i]->length() == tokens[i].size();
    }
    if (all_done) {
      break;
    }
    if (spans.empty()) {
      continue;
    }
    std::vector<float> logits = model.step(step, spans);
    for (std::size_t s = 0; s < spans.size(); ++s) {
      const float* first = logits.data() + spans[s].row * kVocab;
      got[who[s]].insert(
          got[who[s]].end(), first, first + spans[s].count * kVocab
      );
    }
  }
  for (std::size_t i = 0; i < kMates; ++i) {
    EXPECT_TRUE(same_bits(want[i], got[i])) << "sequence " << i;
  }
}

TEST_P(Invariance, a_restored_prefix_of_any_length_continues_the_same) {
  ThreadPool pool(2);
  TinyModel model = this->model(pool);
  auto first = model.new_kv();
  std::vector<float> want = model.feed(*first, tokens_);
  std::vector<PagePtr> pages;
  for (std::size_t i = 0; i * kPageTokens < kTokens; ++i) {
    pages.push_back(first->seal(i));
  }
  for (std::size_t keep :
       {std::size_t{1},
        std::size_t{100},
        kPageTokens - 1,
        kPageTokens,
        kPageTokens + 1,
        2 * kPageTokens,
        kTokens - 1}) {
    auto kv = model.new_kv();
    std::size_t count = pages_for(keep);
    kv->restore({pages.data(), count}, keep);
    ASSERT_EQ(kv->length(), keep);
    std::vector<float> got;
    while (kv->length() < kTokens) {
      std::size_t n = std::min(kTokens - kv->length(), 1 + random_.below(50));
      append(got, model.feed(*kv, part(tokens_, kv->length(), n)));
    }
    std::vector<float> rest(
        want.begin() + static_cast<long>(keep * kVocab), want.end()
    );
    EXPECT_TRUE(same_bits(rest, got)) << "kept " << keep;
  }
}

TEST_P(Invariance, truncated_and_abandoned_steps_leave_no_trace) {
  ThreadPool pool(2);
  TinyModel model = this->model(pool);
  auto whole = model.new_kv();
  std::vector<float> want = model.feed(*whole, tokens_);
  auto kv = model.new_kv();
  std::vector<Token> other = random_tokens(60, random_);
  std::vector<float> got;
  while (kv->length() < kTokens) {
    std::size_t length = kv->length();
    std::size_t n = std::min(kTokens - length, 1 + random_.below(120));
    switch (random_.below(3)) {
      case 0: {
        Span span{0, other.size(), kv.get()};
        model.step(other, {&span, 1}, false);
        ASSERT_EQ(kv->length(), length);
        break;
      }
      case 1:
        model.feed(*kv, other);
        kv->truncate(length);
        break;
      default:
        if (length > 0) {
          kv->seal((length - 1) / kPageTokens);
        }
    }
    append(got, model.feed(*kv, part(tokens_, length, n)));
  }
  EXPECT_TRUE(same_bits(want, got));
}

class EveryTarget : public testing::TestWithParam<Activations> {};

TEST_P(EveryTarget, gives_the_same_logits) {
  Random random(17);
  std::vector<Token> tokens = random_tokens(kTokens, random);
  std::vector<float> want;
  for (const Kernels* kernels : available_kernels()) {
    ThreadPool pool(2);
    TinyModel model(pool, GetParam(), *kernels);
    auto kv = model.new_kv();
    std::vector<float> got = in_chunks(model, *kv, tokens, 100, random);
    if (want.empty()) {
      want = got;
    }
    EXPECT_TRUE(same_bits(want, got)) << kernels->name;
  }
}

// The scalar target is slow, and EveryTarget compares it.
INSTANTIATE_TEST_SUITE_P(
    Modes,
    Invariance,
    testing::Combine(
        testing::ValuesIn(kModes),
        testing::ValuesIn(all_targets().begin() + 1, all_targets().end())
    ),
    [](const testing::TestParamInfo<Invariance::ParamType>& info) {
      return std::string(to_string(std::get<0>(info.param))) + "_" +
             std::get<1>(info.param).kernels->name;
    }
);

INSTANTIATE_TEST_SUITE_P(
    Modes,
    EveryTarget,
    testing::ValuesIn(kModes),
    [](const testing::TestParamInfo<Activations>& mode) {
      return to_string(mode.param);
    }
);

}  // namespace
}  // namespace afterglow
