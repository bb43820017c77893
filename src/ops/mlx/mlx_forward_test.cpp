#include <gtest/gtest.h>

#include "ops/mlx/mlx_ops.h"
#include "ops/mlx/tiny_llama.h"

namespace afterglow {
namespace {

using mlx_test::Dice;
using mlx_test::Format;
using mlx_test::random_tokens;
using mlx_test::relative_error;
using mlx_test::Row;
using mlx_test::TinyLlama;

const Format kFormats[] = {
    {},
    {ElementType::kF16, 4, 32, false, true},
    {ElementType::kF16, 8, 32, true, false},
};

class MlxForward : public testing::TestWithParam<Format> {
 protected:
  void SetUp() override {
    auto made = make_mlx_ops(pool_, MlxDevice::kCpu);
    ASSERT_TRUE(made.ok()) << made.error().message;
    ops_ = std::move(made).value();
    llama_.load(*ops_);
  }

  std::unique_ptr<KvState> new_kv() { return ops_->new_kv(layout_, pages_); }

  /// The logits of `part` of the tokens, from `first` on.
  static Row rows_from(const Row& all, std::size_t first) {
    return {all.begin() + std::ptrdiff_t(first * TinyLlama::kVocab), all.end()};
  }

  ThreadPool pool_{2};
  Dice dice_{11};
  TinyLlama llama_{dice_, GetParam()};
  KvLayout layout_ = TinyLlama::layout(KvType::kF32);
  PagePool pages_{layout_.page_bytes()};
  std::unique_ptr<Ops> ops_;
};

std::vector<Token> part_of(
    const std::vector<Token>& tokens, std::size_t first, std::size_t count
) {
  const auto from = tokens.begin() + std::ptrdiff_t(first);
  return {from, from + std::ptrdiff_t(count)};
}

double difference(std::span<const float> a, std::span<const float> b) {
  const Row want(b.begin(), b.end());
  return relative_error(a, want);
}

TEST_P(MlxForward, logits_are_those_of_plain_loops) {
  const auto tokens = random_tokens(40, dice_);
  const Row want = llama_.naive(tokens);
  auto kv = new_kv();
  std::vector<float> got;
  std::size_t at = 0;
  for (std::size_t count : {7U, 1U, 1U, 31U}) {
    const auto part = llama_.step(*kv, part_of(tokens, at, count));
    got.insert(got.end(), part.begin(), part.end());
    at += count;
  }
  EXPECT_LT(relative_error(got, want), 1e-5);
}

TEST_P(MlxForward, sequences_in_one_batch_get_what_each_gets_alone) {
  const auto one = random_tokens(270, dice_);
  const auto two = random_tokens(30, dice_);
  auto alone_one = new_kv(), alone_two = new_kv();
  auto first = new_kv(), second = new_kv();
  std::size_t at_one = 0, at_two = 0;
  const std::pair<std::size_t, std::size_t> steps[] = {
      {250, 3}, {1, 20}, {1, 1}, {18, 6}};
  for (auto [n, m] : steps) {
    const auto tokens_one = part_of(one, at_one, n);
    const auto tokens_two = part_of(two, at_two, m);
    const TinyLlama::Part parts[] = {
        {first.get(), tokens_one}, {second.get(), tokens_two}};
    const auto both = llama_.step(parts);
    EXPECT_LT(difference(both[0], llama_.step(*alone_one, tokens_one)), 1e-5);
    EXPECT_LT(difference(both[1], llama_.step(*alone_two, tokens_two)), 1e-5);
    at_one += n;
    at_two += m;
  }
  EXPECT_EQ(first->length(), 270U);
  EXPECT_EQ(second->length(), 30U);
}

TEST_P(MlxForward, a_restored_prefix_goes_on_as_a_computed_one) {
  const auto tokens = random_tokens(300, dice_);
  auto cold = new_kv();
  llama_.step(*cold, part_of(tokens, 0, 280));
  const PagePtr pages[] = {cold->seal(0), cold->seal(1)};
  const auto want = llama_.step(*cold, part_of(tokens, 280, 20));

  auto warm = new_kv();
  warm->restore(pages, 280);
  EXPECT_EQ(llama_.step(*warm, part_of(tokens, 280, 20)), want);

  // In the middle of a page, and a rest that differs.
  auto other = new_kv();
  other->restore({pages, 1}, 100);
  const auto rest = random_tokens(10, dice_);
  auto all = part_of(tokens, 0, 100);
  all.insert(all.end(), rest.begin(), rest.end());
  EXPECT_LT(
      relative_error(
          llama_.step(*other, rest), rows_from(llama_.naive(all), 100)
      ),
      1e-5
  );
}

TEST_P(MlxForward, a_truncated_sequence_goes_on_from_there) {
  const auto tokens = random_tokens(60, dice_);
  auto kv = new_kv();
  llama_.step(*kv, tokens);
  kv->truncate(25);
  auto all = part_of(tokens, 0, 25);
  const auto rest = random_tokens(9, dice_);
  all.insert(all.end(), rest.begin(), rest.end());
  EXPECT_LT(
      relative_error(llama_.step(*kv, rest), rows_from(llama_.naive(all), 25)),
      1e-5
  );
}

INSTANTIATE_TEST_SUITE_P(
    Formats,
    MlxForward,
    testing::ValuesIn(kFormats),
    [](const auto& info) {
      return info.param.bits == 0 ? std::string("f32")
                                  : "bits" + std::to_string(info.param.bits);
    }
);

}  // namespace
}  // namespace afterglow
