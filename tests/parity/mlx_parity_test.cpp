#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "base/page.h"
#include "base/thread_pool.h"
#include "model/model.h"
#include "model/test_model.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/mlx/mlx_ops.h"

namespace afterglow {
namespace {

/// The logits of all tokens, computed in the given chunks.
/// Shape: [tokens, vocab]; empty after a failure, which is reported.
std::vector<float> logits_of(
    Ops& ops, std::span<const Token> tokens, std::span<const std::size_t> chunks
) {
  auto model = load_model(test_model_path(), ops);
  EXPECT_TRUE(model.ok()) << model.error().message;
  if (!model.ok()) {
    return {};
  }
  const std::size_t vocab = model->vocab_size;
  PagePool pages(model->layout.page_bytes());
  auto kv = ops.new_kv(model->layout, pages);
  std::vector<float> logits(tokens.size() * vocab);
  for (std::size_t count : chunks) {
    const std::size_t at = kv->length();
    const Span span{0, count, kv.get()};
    Batch batch;
    batch.tokens = tokens.subspan(at, count);
    batch.spans = {&span, 1};
    std::vector<std::size_t> rows(count);
    std::iota(rows.begin(), rows.end(), 0);
    ops.begin(batch);
    {
      const Value x = model->architecture->forward(ops, batch);
      ops.logits(
          x,
          model->architecture->head(),
          rows,
          model->architecture->logit_softcap(),
          std::span(logits).subspan(at * vocab, count * vocab)
      );
    }
    const Status status = ops.end(true);
    EXPECT_TRUE(status.ok()) << status.error().message;
    if (!status.ok()) {
      return {};
    }
  }
  EXPECT_EQ(kv->length(), tokens.size());
  return logits;
}

TEST(MlxParity, logits_of_a_real_model_are_those_of_our_f32_kernels) {
  // Any short text does.
  const std::vector<Token> tokens = {
      504, 3575, 282, 4649, 314, 7042, 28, 284, 260, 1, 9690, 198};
  const std::size_t chunks[] = {9, 1, 2};
  ThreadPool pool(2);
  auto mlx_ops = make_mlx_ops(pool, MlxDevice::kCpu);
  ASSERT_TRUE(mlx_ops.ok()) << mlx_ops.error().message;
  const auto mlx = logits_of(**mlx_ops, tokens, chunks);
  const auto cpu_ops = make_cpu_ops(pool, Activations::kF32).value();
  const auto cpu = logits_of(*cpu_ops, tokens, chunks);

  ASSERT_FALSE(mlx.empty());
  ASSERT_EQ(mlx.size(), cpu.size());
  double largest = 0, size = 0;
  for (std::size_t i = 0; i < mlx.size(); ++i) {
    ASSERT_TRUE(std::isfinite(mlx[i]) && std::isfinite(cpu[i]));
    largest = std::max(largest, std::fabs(double(mlx[i]) - cpu[i]));
    size = std::max(size, std::fabs(double(mlx[i])));
  }
  std::printf(
      "largest difference of logits: %.2e, of logits up to %.1f\n",
      largest,
      size
  );
  EXPECT_LT(largest, 2e-3);
  EXPECT_GT(size, 1.0);
}

}  // namespace
}  // namespace afterglow
