#include "ops/mlx/mlx_ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <ostream>
#include <thread>

#include "ops/mlx/mlx_test_support.h"

namespace afterglow {
namespace {

using mlx_test::Dice;
using mlx_test::Format;
using mlx_test::Matrix;
using mlx_test::relative_error;
using mlx_test::Row;
using mlx_test::TestMatrix;

/// One sequence, whose inputs are rows of a table, and a way to read values:
/// logits() through the identity.
class MlxOps : public testing::Test {
 protected:
  void SetUp() override {
    auto made = make_mlx_ops(pool_, MlxDevice::kCpu);
    ASSERT_TRUE(made.ok()) << made.error().message;
    ops_ = std::move(made).value();
  }

  Ops& ops() { return *ops_; }

  LinearId add(const TestMatrix& matrix) {
    auto id = ops_->add_linear({{matrix.source}}, {});
    EXPECT_TRUE(id.ok());
    return *id;
  }

  /// A sequence without layers, for ops that need no KV.
  std::unique_ptr<KvState> plain_kv() {
    static PagePool pool(0);
    return ops_->new_kv({}, pool);
  }

  /// Runs body(x) on rows [first, first + count) of the table in a step.
  /// Shape: [count, width], which body returns.
  template <class Body>
  std::vector<float> step(
      LinearId table,
      std::size_t first,
      std::size_t count,
      std::size_t width,
      KvState& kv,
      const Body& body,
      bool commit = true
  ) {
    std::vector<Token> tokens(count);
    std::iota(tokens.begin(), tokens.end(), static_cast<Token>(first));
    const Span span{0, count, &kv};
    Batch batch;
    batch.tokens = tokens;
    batch.spans = {&span, 1};
    const LinearId reader = identity(width);
    ops_->begin(batch);
    std::vector<float> out(count * width);
    {
      const Value y = body(ops_->embed(table, 1));
      std::vector<std::size_t> rows(count);
      std::iota(rows.begin(), rows.end(), 0);
      ops_->logits(y, reader, rows, 0, out);
    }
    status_ = ops_->end(commit);
    return out;
  }

  template <class Body>
  std::vector<float> step_all(
      const TestMatrix& rows, std::size_t width, const Body& body
  ) {
    auto kv = plain_kv();
    auto out = step(add(rows), 0, rows.values.size(), width, *kv, body);
    EXPECT_TRUE(status_.ok()) << status_.error().message;
    return out;
  }

  LinearId identity(std::size_t n) {
    if (identities_.size() <= n) {
      identities_.resize(n + 1);
    }
    if (!identities_[n]) {
      identities_[n] = add(mlx_test::identity_matrix(n));
    }
    return identities_[n];
  }

  ThreadPool pool_{2};
  Status status_;

 private:
  std::unique_ptr<Ops> ops_;
  std::vector<LinearId> identities_;
};

Row flattened(const Matrix& matrix) {
  Row all;
  for (const Row& row : matrix) {
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

TEST_F(MlxOps, names_its_version_and_device) {
  EXPECT_EQ(ops().describe(), "mlx 0.32.2 cpu");
  EXPECT_EQ(ops().kv_type(), KvType::kF32);
}

TEST_F(MlxOps, embed_takes_rows_and_scales_them) {
  Dice dice(1);
  const auto table =
      random_matrix(9, 64, {ElementType::kF16, 4, 32, false, true}, dice);
  const LinearId id = add(table);
  auto kv = plain_kv();
  const std::vector<Token> tokens = {8, 0, 3, 3};
  const Span span{0, 4, kv.get()};
  Batch batch;
  batch.tokens = tokens;
  batch.spans = {&span, 1};
  std::vector<float> out(4 * 64);
  const std::vector<std::size_t> rows = {0, 1, 2, 3};
  const LinearId reader = identity(64);
  ops().begin(batch);
  ops().logits(ops().embed(id, 2.5F), reader, rows, 0, out);
  ASSERT_TRUE(ops().end(true).ok());
  Row want;
  for (Token token : tokens) {
    for (double value : table.values[static_cast<std::size_t>(token)]) {
      want.push_back(2.5 * value);
    }
  }
  EXPECT_LT(relative_error(out, want), 1e-6);
}

TEST_F(MlxOps, linear_is_the_product_with_quantized_weights) {
  Dice dice(2);
  const auto x = random_matrix(3, 64, {}, dice);
  const auto weight =
      random_matrix(40, 64, {ElementType::kF16, 8, 32, true, false}, dice);
  const LinearId id = add(weight);
  const auto got =
      step_all(x, 40, [&](const Value& v) { return ops().linear(v, id); });
  Row want;
  for (const Row& row : x.values) {
    const Row y = mlx_test::naive_linear(row, weight.values);
    want.insert(want.end(), y.begin(), y.end());
  }
  EXPECT_LT(relative_error(got, want), 1e-5);
}

TEST_F(MlxOps, rms_norm_scales_each_row_by_its_own_size) {
  Dice dice(3);
  auto x = random_matrix(3, 48, {}, dice);
  const auto weight = mlx_test::random_vector(48, dice);
  const VectorId id = ops().add_vector(weight);
  const auto got = step_all(x, 48, [&](const Value& v) {
    return ops().rms_norm(v, id, 0.1F);
  });
  for (Row& row : x.values) {
    mlx_test::naive_rms_norm(row, weight, 0.1F);
  }
  EXPECT_LT(relative_error(got, flattened(x.values)), 1e-6);
}

TEST_F(MlxOps, add_sums_in_place) {
  Dice dice(4);
  const auto x = random_matrix(3, 32, {}, dice);
  const auto weight = random_matrix(32, 32, {}, dice);
  const LinearId id = add(weight);
  const auto got = step_all(x, 32, [&](Value v) {
    const Value y = ops().linear(v, id);
    ops().add(v, y);
    return v;
  });
  Row want;
  for (const Row& row : x.values) {
    const Row y = mlx_test::naive_linear(row, weight.values);
    for (std::size_t i = 0; i < y.size(); ++i) {
      want.push_back(row[i] + y[i]);
    }
  }
  EXPECT_LT(relative_error(got, want), 1e-5);
}

TEST_F(MlxOps, gated_mlp_gates_the_second_half_by_the_first) {
  Dice dice(5);
  const auto x = random_matrix(3, 32, {}, dice);
  const auto up = random_matrix(
      96, 32, {ElementType::kF16, 4, 32, false, true}, dice, 0.3F
  );
  const auto down = random_matrix(32, 48, {}, dice, 0.3F);
  const LinearId up_id = add(up), down_id = add(down);
  for (auto function : {GateFunction::kSilu, GateFunction::kGeluTanh}) {
    const auto got = step_all(x, 32, [&](const Value& v) {
      return ops().gated_mlp(v, up_id, down_id, function);
    });
    Row want;
    for (const Row& row : x.values) {
      const Row y = mlx_test::naive_mlp(row, up.values, down.values, function);
      want.insert(want.end(), y.begin(), y.end());
    }
    EXPECT_LT(relative_error(got, want), 1e-5);
  }
}

TEST_F(MlxOps, logits_are_those_of_the_rows_asked_for_in_their_order) {
  Dice dice(6);
  const auto x = random_matrix(5, 32, {}, dice);
  const auto head = random_matrix(20, 32, {}, dice);
  const LinearId table = add(x), id = add(head);
  for (float cap : {0.0F, 7.0F}) {
    auto kv = plain_kv();
    const std::vector<Token> tokens = {0, 1, 2, 3, 4};
    const Span span{0, 5, kv.get()};
    Batch batch;
    batch.tokens = tokens;
    batch.spans = {&span, 1};
    const std::vector<std::size_t> rows = {4, 1};
    std::vector<float> out(2 * 20);
    ops().begin(batch);
    ops().logits(ops().embed(table, 1), id, rows, cap, out);
    ASSERT_TRUE(ops().end(true).ok());
    Row want;
    for (std::size_t row : rows) {
      for (double y : mlx_test::naive_linear(x.values[row], head.values)) {
        want.push_back(cap == 0 ? y : cap * std::tanh(y / cap));
      }
    }
    EXPECT_LT(relative_error(out, want), 1e-5);
  }
}

struct AttentionCase {
  const char* name;
  std::optional<Rope> rope;
  bool norms = false;
  std::uint32_t window = 0;
  float softcap = 0;
  bool sinks = false;
};

void PrintTo(const AttentionCase& c, std::ostream* out) {
  *out << c.name;
}

class MlxAttend : public MlxOps,
                  public testing::WithParamInterface<AttentionCase> {};

TEST_P(MlxAttend, chunks_of_a_sequence_give_what_all_of_it_gives) {
  const AttentionCase& c = GetParam();
  Dice dice(7);
  constexpr std::size_t kTokens = 300, kHeads = 6, kKvHeads = 2, kDim = 16;
  const auto qkv =
      random_matrix(kTokens, (kHeads + 2 * kKvHeads) * kDim, {}, dice);
  Attention attention;
  attention.heads = kHeads;
  attention.kv_heads = kKvHeads;
  attention.head_dim = kDim;
  attention.scale = 0.25F;
  attention.rope = c.rope ? &*c.rope : nullptr;
  attention.window = c.window;
  attention.softcap = c.softcap;
  std::vector<float> q_norm, k_norm;
  if (c.norms) {
    q_norm = mlx_test::random_vector(kDim, dice);
    k_norm = mlx_test::random_vector(kDim, dice);
    attention.q_norm = ops().add_vector(q_norm);
    attention.k_norm = ops().add_vector(k_norm);
    attention.norm_eps = 1e-5F;
  }
  std::vector<float> sinks;
  if (c.sinks) {
    sinks = mlx_test::random_vector(kHeads, dice);
    attention.sinks = ops().add_vector(sinks);
  }
  const Row want = flattened(
      mlx_test::naive_attend(qkv.values, attention, q_norm, k_norm, sinks)
  );

  KvLayout layout;
  layout.layers = {{kKvHeads, kDim, kDim, KvType::kF32, c.window}};
  PagePool pages(layout.page_bytes());
  const LinearId table = add(qkv);
  auto kv = ops().new_kv(layout, pages);
  std::vector<float> got;
  std::size_t at = 0;
  for (std::size_t count : {1U, 40U, 5U, 1U, 2U, 200U, 51U}) {
    const auto part = step(table, at, count, kHeads * kDim, *kv, [&](Value v) {
      return ops().attend(std::move(v), attention);
    });
    ASSERT_TRUE(status_.ok()) << status_.error().message;
    got.insert(got.end(), part.begin(), part.end());
    at += count;
    EXPECT_EQ(kv->length(), at);
  }
  ASSERT_EQ(at, kTokens);
  EXPECT_LT(relative_error(got, want), 2e-5);
}

Rope rope_of(std::size_t pairs, double scale, bool interleaved) {
  return {mlx_test::plain_frequencies(pairs), scale, interleaved};
}

INSTANTIATE_TEST_SUITE_P(
    Cases,
    MlxAttend,
    testing::Values(
        AttentionCase{"plain", std::nullopt},
        AttentionCase{"rope", rope_of(8, 1, false)},
        AttentionCase{"rope_interleaved", rope_of(8, 1, true)},
        AttentionCase{"rope_partial_scaled", rope_of(5, 1.3, false)},
        AttentionCase{"norms", rope_of(8, 1, false), true},
        AttentionCase{"window", rope_of(8, 1, false), false, 24},
        AttentionCase{"window_of_one", std::nullopt, false, 1},
        AttentionCase{"softcap", rope_of(8, 1, false), false, 0, 3},
        AttentionCase{"window_softcap", std::nullopt, true, 24, 3},
        AttentionCase{"sinks", rope_of(8, 1, false), false, 0, 0, true},
        AttentionCase{"window_sinks", std::nullopt, false, 24, 0, true},
        AttentionCase{"softcap_sinks", std::nullopt, false, 0, 3, true}
    ),
    [](const auto& info) { return std::string(info.param.name); }
);

/// Attention over one layer of 2 heads, for the tests of failures.
class MlxFailures : public MlxOps {
 protected:
  void SetUp() override {
    MlxOps::SetUp();
    layout_.layers = {{1, 8, 8, KvType::kF32, 0}};
    pages_.emplace(layout_.page_bytes());
    attention_.heads = 2;
    attention_.kv_heads = 1;
    attention_.head_dim = 8;
    attention_.scale = 0.3F;
    Dice dice(8);
    table_ = add(random_matrix(40, 32, {}, dice));
    kv_ = ops().new_kv(layout_, *pages_);
  }

  std::vector<float> attend(
      std::size_t first, std::size_t count, bool commit = true
  ) {
    return step(
        table_,
        first,
        count,
        16,
        *kv_,
        [&](Value v) { return ops().attend(std::move(v), attention_); },
        commit
    );
  }

  KvLayout layout_;
  std::optional<PagePool> pages_;
  Attention attention_;
  LinearId table_;
  std::unique_ptr<KvState> kv_;
};

TEST_F(MlxFailures, a_failed_step_is_reported_with_mlx_words_and_undone) {
  const auto all = attend(0, 20);
  kv_->truncate(0);
  attend(0, 10);
  // More pairs than the head has: MLX throws while the graph is built.
  const Rope wrong = rope_of(8, 1, false);
  attention_.rope = &wrong;
  const auto bad = attend(10, 10);
  ASSERT_FALSE(status_.ok());
  EXPECT_EQ(status_.error().code, Code::kInternal);
  EXPECT_NE(status_.error().message.find("[rope]"), std::string::npos)
      << status_.error().message;
  for (float value : bad) {
    ASSERT_TRUE(std::isnan(value));
  }
  EXPECT_EQ(kv_->length(), 10U);

  attention_.rope = nullptr;
  const auto again = attend(10, 10);
  ASSERT_TRUE(status_.ok());
  EXPECT_EQ(again, std::vector<float>(all.begin() + 10 * 16, all.end()));
}

TEST_F(MlxFailures, a_step_not_committed_can_be_repeated) {
  attend(0, 10);
  const auto first = attend(10, 10, false);
  ASSERT_TRUE(status_.ok());
  EXPECT_EQ(kv_->length(), 10U);
  EXPECT_EQ(attend(10, 10), first);
  EXPECT_EQ(kv_->length(), 20U);
}

TEST_F(MlxFailures, a_commit_without_logits_computes_the_kv) {
  const auto whole = attend(0, 20);
  kv_->truncate(0);
  const std::vector<Token> tokens = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const Span span{0, 10, kv_.get()};
  Batch batch;
  batch.tokens = tokens;
  batch.spans = {&span, 1};
  ops().begin(batch);
  { Value v = ops().attend(ops().embed(table_, 1), attention_); }
  ASSERT_TRUE(ops().end(true).ok());
  EXPECT_EQ(kv_->length(), 10U);
  EXPECT_EQ(
      attend(10, 10), std::vector<float>(whole.begin() + 160, whole.end())
  );
}

TEST(MlxOpsThreads, ops_made_on_a_thread_work_there) {
  bool ok = false;
  std::thread worker([&] {
    ThreadPool pool(1);
    auto ops = make_mlx_ops(pool, MlxDevice::kCpu);
    ASSERT_TRUE(ops.ok());
    Dice dice(9);
    const auto matrix = random_matrix(4, 32, {}, dice);
    const auto id = (*ops)->add_linear({{matrix.source}}, {});
    PagePool none(0);
    auto kv = (*ops)->new_kv({}, none);
    const std::vector<Token> tokens = {2};
    const Span span{0, 1, kv.get()};
    Batch batch;
    batch.tokens = tokens;
    batch.spans = {&span, 1};
    std::vector<float> out(4);
    const std::vector<std::size_t> rows = {0};
    (*ops)->begin(batch);
    (*ops)->logits((*ops)->embed(*id, 1), *id, rows, 0, out);
    ok = (*ops)->end(true).ok() &&
         relative_error(
             out, mlx_test::naive_linear(matrix.values[2], matrix.values)
         ) < 1e-6;
  });
  worker.join();
  EXPECT_TRUE(ok);
}

}  // namespace
}  // namespace afterglow
