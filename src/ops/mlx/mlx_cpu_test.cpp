#include <gtest/gtest.h>

#include "ops/cpu/cpu_ops.h"
#include "ops/mlx/mlx_ops.h"
#include "ops/mlx/tiny_llama.h"

namespace afterglow {
namespace {

using mlx_test::Dice;
using mlx_test::random_tokens;
using mlx_test::relative_error;
using mlx_test::Row;
using mlx_test::TinyLlama;

/// The same network on both backends, in f32.
class MlxAndCpu : public testing::Test {
 protected:
  void SetUp() override {
    auto made = make_mlx_ops(pool_, MlxDevice::kCpu);
    ASSERT_TRUE(made.ok()) << made.error().message;
    mlx_ops_ = std::move(made).value();
    cpu_ops_ = make_cpu_ops(pool_, Activations::kF32).value();
    on_mlx_.load(*mlx_ops_);
    on_cpu_.load(*cpu_ops_);
  }

  static double difference(
      std::span<const float> got, std::span<const float> want
  ) {
    return relative_error(got, Row(want.begin(), want.end()));
  }

  ThreadPool pool_{2};
  Dice dice_{21};
  TinyLlama on_mlx_{dice_, {ElementType::kF16, 4, 32, false, true}};
  TinyLlama on_cpu_ = on_mlx_;
  KvLayout layout_ = TinyLlama::layout(KvType::kF32);
  PagePool pages_{layout_.page_bytes()};
  std::unique_ptr<Ops> mlx_ops_, cpu_ops_;
};

TEST_F(MlxAndCpu, agree_in_f32) {
  auto mlx_kv = mlx_ops_->new_kv(layout_, pages_);
  auto cpu_kv = cpu_ops_->new_kv(layout_, pages_);
  for (std::size_t count : {5U, 1U, 200U, 1U, 93U, 1U}) {
    const auto tokens = random_tokens(count, dice_);
    EXPECT_LT(
        difference(
            on_mlx_.step(*mlx_kv, tokens), on_cpu_.step(*cpu_kv, tokens)
        ),
        1e-5
    );
  }
}

TEST_F(MlxAndCpu, pages_of_one_go_on_in_the_other) {
  auto mlx_kv = mlx_ops_->new_kv(layout_, pages_);
  auto cpu_kv = cpu_ops_->new_kv(layout_, pages_);
  const auto tokens = random_tokens(300, dice_);
  on_mlx_.step(*mlx_kv, tokens);
  on_cpu_.step(*cpu_kv, tokens);
  const PagePtr of_mlx[] = {mlx_kv->seal(0), mlx_kv->seal(1)};
  const PagePtr of_cpu[] = {cpu_kv->seal(0), cpu_kv->seal(1)};
  auto mlx_warm = mlx_ops_->new_kv(layout_, pages_);
  auto cpu_warm = cpu_ops_->new_kv(layout_, pages_);
  mlx_warm->restore(of_cpu, 300);
  cpu_warm->restore(of_mlx, 300);
  const auto rest = random_tokens(12, dice_);
  const auto want = on_mlx_.step(*mlx_kv, rest);
  EXPECT_LT(difference(on_mlx_.step(*mlx_warm, rest), want), 1e-5);
  EXPECT_LT(difference(on_cpu_.step(*cpu_warm, rest), want), 1e-5);
}

}  // namespace
}  // namespace afterglow
