#include "ops/cpu/cpu_ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/dispatch/dispatch.h"
#include "kernels/half.h"
#include "kernels/testing/matrix.h"

namespace afterglow {
namespace {

using test::Format;
using test::Matrix;
using test::Random;

const Format kDense{"f32", ElementType::kF32, 0, 0, false, false};

// Ops whose inputs are rows of a table and whose outputs are read back
// through an identity head, exactly.
class CpuOpsTest : public testing::TestWithParam<Activations> {
 protected:
  LinearId add(const Matrix& matrix, std::span<const float> bias = {}) {
    return ops_->add_linear({&matrix.source, 1}, bias).value();
  }
  LinearId identity(std::size_t n) {
    MatrixSource source;
    source.rows = n;
    source.cols = n;
    source.read =
        [n](std::size_t first, std::size_t count, void* codes, void*, void*) {
          auto* out = static_cast<float*>(codes);
          for (std::size_t i = 0; i < count * n; ++i) {
            out[i] = i % n == first + i / n ? 1.0f : 0.0f;
          }
        };
    return ops_->add_linear({&source, 1}, {}).value();
  }
  std::vector<float> read(const Value& x, std::size_t tokens) {
    std::vector<std::size_t> rows(tokens);
    for (std::size_t i = 0; i < tokens; ++i) {
      rows[i] = i;
    }
    std::vector<float> out(tokens * x.width());
    ops_->logits(x, identity(x.width()), rows, 0, out);
    return out;
  }
  // A layer-less sequence for ops without attention.
  void begin(std::size_t tokens) {
    ids_.resize(tokens);
    for (std::size_t i = 0; i < tokens; ++i) {
      ids_[i] = static_cast<Token>(i);
    }
    layout_.layers = {{1, 16, 16, ops_->kv_type(), 0}};
    pages_ = std::make_unique<PagePool>(layout_.page_bytes());
    kv_ = ops_->new_kv(layout_, *pages_);
    span_ = {0, tokens, kv_.get()};
    ops_->begin({ids_, {&span_, 1}, nullptr});
  }

  Random random_{31};
  ThreadPool pool_{2};
  std::unique_ptr<Ops> ops_ = make_cpu_ops(pool_, GetParam()).value();
  KvLayout layout_;
  std::unique_ptr<PagePool> pages_;
  std::unique_ptr<KvState> kv_;
  std::vector<Token> ids_;
  Span span_;
};

TEST_P(CpuOpsTest, embedding_is_exact_and_scaled) {
  Format eight{"", ElementType::kF16, 8, 32, true, false};
  Matrix table = test::random_matrix(eight, 20, 64, random_);
  LinearId id = add(table);
  begin(20);
  {
    std::vector<float> got = read(ops_->embed(id, 1.5f), 20);
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i], static_cast<float>(table.weights[i]) * 1.5f);
    }
  }
  ASSERT_TRUE(ops_->end(true).ok());
}

TEST_P(CpuOpsTest, linear_adds_its_bias_over_parts_of_several_formats) {
  Matrix table = test::random_matrix(kDense, 12, 64, random_);
  Matrix parts[] = {
      test::random_matrix(
          {"", ElementType::kF16, 4, 32, false, true}, 24, 64, random_
      ),
      test::random_matrix(
          {"", ElementType::kF16, 4, 32, false, true}, 9, 64, random_
      ),
      test::random_matrix(
          {"", ElementType::kF16, 8, 64, true, false}, 21, 64, random_
      ),
      test::random_matrix(kDense, 5, 64, random_),
  };
  std::vector<MatrixSource> sources;
  std::vector<double> weights;
  for (const Matrix& part : parts) {
    sources.push_back(part.source);
    weights.insert(weights.end(), part.weights.begin(), part.weights.end());
  }
  std::vector<float> bias = random_.floats(59);
  LinearId w = ops_->add_linear(sources, bias).value();
  LinearId id = add(table);
  begin(12);
  {
    Value x = ops_->embed(id, 1);
    std::vector<float> got = read(ops_->linear(x, w), 12);
    double coarse = GetParam() == Activations::kInt8 ? 0.6 : 5e-3;
    for (std::size_t t = 0; t < 12; ++t) {
      for (std::size_t r = 0; r < 59; ++r) {
        double want = bias[r];
        for (std::size_t c = 0; c < 64; ++c) {
          want += weights[r * 64 + c] * table.weights[t * 64 + c];
        }
        ASSERT_NEAR(got[t * 59 + r], want, coarse) << t << " " << r;
      }
    }
  }
  ASSERT_TRUE(ops_->end(true).ok());
}

TEST_P(CpuOpsTest, a_bias_of_another_length_is_refused) {
  Matrix m = test::random_matrix(kDense, 8, 16, random_);
  std::vector<float> bias(7);
  Result<LinearId> id = ops_->add_linear({&m.source, 1}, bias);
  ASSERT_FALSE(id.ok());
  EXPECT_EQ(id.error().code, Code::kInvalidArgument);
}

TEST_P(CpuOpsTest, gated_mlp_is_the_formula) {
  Matrix table = test::random_matrix(kDense, 10, 48, random_);
  Matrix gate = test::random_matrix(kDense, 64, 48, random_);
  Matrix up = test::random_matrix(kDense, 64, 48, random_);
  Matrix down = test::random_matrix(kDense, 48, 64, random_);
  MatrixSource both[] = {gate.source, up.source};
  LinearId gate_up = ops_->add_linear(both, {}).value();
  LinearId d = add(down);
  LinearId id = add(table);
  for (GateFunction f : {GateFunction::kSilu, GateFunction::kGeluTanh}) {
    begin(10);
    {
      Value x = ops_->embed(id, 1);
      std::vector<float> got = read(ops_->gated_mlp(x, gate_up, d, f), 10);
      for (std::size_t t = 0; t < 10; ++t) {
        std::vector<double> inner(64);
        for (std::size_t r = 0; r < 64; ++r) {
          double g = 0;
          double u = 0;
          for (std::size_t c = 0; c < 48; ++c) {
            g += gate.weights[r * 48 + c] * table.weights[t * 48 + c];
            u += up.weights[r * 48 + c] * table.weights[t * 48 + c];
          }
          double cube = g + 0.044715 * g * g * g;
          double gelu = 0.5 * g * (1 + std::tanh(std::sqrt(2 / M_PI) * cube));
          inner[r] =
              u * (f == GateFunction::kSilu ? g / (1 + std::exp(-g)) : gelu);
        }
        for (std::size_t r = 0; r < 48; ++r) {
          double want = 0;
          for (std::size_t c = 0; c < 64; ++c) {
            want += down.weights[r * 64 + c] * inner[c];
          }
          ASSERT_NEAR(got[t * 48 + r], want, 1e-4);
        }
      }
    }
    ASSERT_TRUE(ops_->end(true).ok());
  }
}

struct AttentionCase {
  std::size_t heads, kv_heads, dim;
  std::uint32_t window;
  float softcap;
  bool rope, interleaved, norms, sinks;
};

// Rotated and normed in double, from the definition.
std::vector<double> ready_head(
    const double* x,
    const AttentionCase& c,
    const Rope& rope,
    const std::vector<float>& norm,
    std::size_t position
) {
  std::vector<double> head(x, x + c.dim);
  if (c.norms) {
    double squares = 0;
    for (double v : head) {
      squares += v * v;
    }
    double factor = 1 / std::sqrt(squares / static_cast<double>(c.dim) + 1e-6);
    for (std::size_t i = 0; i < c.dim; ++i) {
      head[i] *= factor * norm[i];
    }
  }
  if (c.rope) {
    std::size_t pairs = rope.inv_freq.size();
    for (std::size_t i = 0; i < pairs; ++i) {
      double angle = static_cast<double>(position) * rope.inv_freq[i];
      std::size_t first = c.interleaved ? 2 * i : i;
      std::size_t second = c.interleaved ? 2 * i + 1 : i + pairs;
      double a = head[first];
      double b = head[second];
      head[first] = rope.scale * (a * std::cos(angle) - b * std::sin(angle));
      head[second] = rope.scale * (b * std::cos(angle) + a * std::sin(angle));
    }
  }
  return head;
}

TEST_P(CpuOpsTest, attention_is_near_the_double_loop) {
  const AttentionCase cases[] = {
      {6, 2, 64, 0, 0, true, false, false, true},
      {4, 4, 32, 0, 30, true, true, false, false},
      {8, 1, 48, 50, 0, true, false, true, false},
      {2, 1, 16, 300, 10, false, false, true, true},
  };
  constexpr std::size_t kTokens = 2 * kPageTokens + 10;
  constexpr double kScale = 0.2;
  for (const AttentionCase& c : cases) {
    std::size_t width = (c.heads + 2 * c.kv_heads) * c.dim;
    Matrix table = test::random_matrix(kDense, kTokens, width, random_);
    LinearId id = add(table);
    std::vector<float> norm = random_.floats(c.dim);
    std::vector<float> sinks = random_.floats(c.heads);
    Rope rope;
    rope.scale = 1.1;
    rope.interleaved = c.interleaved;
    // The last dimensions stay unrotated.
    for (std::size_t i = 0; i < c.dim / 4; ++i) {
      rope.inv_freq.push_back(std::pow(0.7, static_cast<double>(i)));
    }
    begin(kTokens);
    KvLayout layout;
    auto heads = static_cast<std::uint32_t>(c.kv_heads);
    auto dim = static_cast<std::uint32_t>(c.dim);
    layout.layers = {{heads, dim, dim, ops_->kv_type(), 0}};
    ASSERT_TRUE(ops_->end(false).ok());
    PagePool pages(layout.page_bytes());
    auto kv = ops_->new_kv(layout, pages);
    Span span{0, kTokens, kv.get()};
    ops_->begin({ids_, {&span, 1}, nullptr});
    std::vector<float> got;
    {
      Attention a{
          .layer = 0,
          .heads = c.heads,
          .kv_heads = c.kv_heads,
          .head_dim = c.dim,
          .scale = kScale,
          .rope = c.rope ? &rope : nullptr,
          .norm_eps = 1e-6f,
          .window = c.window,
          .softcap = c.softcap,
      };
      if (c.norms) {
        a.q_norm = ops_->add_vector(norm);
        a.k_norm = a.q_norm;
      }
      if (c.sinks) {
        a.sinks = ops_->add_vector(sinks);
      }
      got = read(ops_->attend(ops_->embed(id, 1), a), kTokens);
    }
    ASSERT_TRUE(ops_->end(true).ok());
    ASSERT_EQ(kv->length(), kTokens);

    std::vector<std::vector<double>> keys(kTokens * c.kv_heads);
    for (std::size_t t = 0; t < kTokens; ++t) {
      for (std::size_t h = 0; h < c.kv_heads; ++h) {
        const double* k =
            table.weights.data() + t * width + (c.heads + h) * c.dim;
        keys[t * c.kv_heads + h] = ready_head(k, c, rope, norm, t);
      }
    }
    double bound = ops_->kv_type() == KvType::kF16 ? 3e-3 : 2e-5;
    for (std::size_t t = 0; t < kTokens; t += 1 + random_.below(20)) {
      for (std::size_t h = 0; h < c.heads; ++h) {
        const double* row = table.weights.data() + t * width;
        std::vector<double> q = ready_head(row + h * c.dim, c, rope, norm, t);
        std::size_t kv_head = h / (c.heads / c.kv_heads);
        std::size_t first =
            c.window != 0 && t + 1 > c.window ? t + 1 - c.window : 0;
        std::vector<double> want(c.dim);
        double total = c.sinks ? std::exp(double{sinks[h]}) : 0;
        for (std::size_t i = first; i <= t; ++i) {
          double score = 0;
          for (std::size_t d = 0; d < c.dim; ++d) {
            score += q[d] * keys[i * c.kv_heads + kv_head][d];
          }
          score *= kScale;
          if (c.softcap != 0) {
            score = c.softcap * std::tanh(score / c.softcap);
          }
          double weight = std::exp(score);
          total += weight;
          const double* v = table.weights.data() + i * width +
                            (c.heads + c.kv_heads + kv_head) * c.dim;
          for (std::size_t d = 0; d < c.dim; ++d) {
            want[d] += weight * v[d];
          }
        }
        for (std::size_t d = 0; d < c.dim; ++d) {
          ASSERT_NEAR(
              got[(t * c.heads + h) * c.dim + d], want[d] / total, bound
          ) << "token "
            << t << " head " << h;
        }
      }
    }
  }
}

TEST_P(CpuOpsTest, logits_come_for_the_asked_rows_in_their_order) {
  Matrix table = test::random_matrix(kDense, 30, 32, random_);
  Matrix head = test::random_matrix(kDense, 11, 32, random_);
  LinearId id = add(table);
  LinearId w = add(head);
  begin(30);
  const std::size_t rows[] = {29, 0, 7};
  std::vector<float> out(33);
  {
    Value x = ops_->embed(id, 1);
    ops_->logits(x, w, rows, 2.0f, out);
  }
  ASSERT_TRUE(ops_->end(true).ok());
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t r = 0; r < 11; ++r) {
      double want = 0;
      for (std::size_t c = 0; c < 32; ++c) {
        want += head.weights[r * 32 + c] * table.weights[rows[i] * 32 + c];
      }
      ASSERT_NEAR(out[i * 11 + r], 2 * std::tanh(want / 2), 1e-5);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Modes,
    CpuOpsTest,
    testing::Values(Activations::kInt16, Activations::kInt8, Activations::kF32),
    [](const testing::TestParamInfo<Activations>& mode) {
      return to_string(mode.param);
    }
);

}  // namespace
}  // namespace afterglow
