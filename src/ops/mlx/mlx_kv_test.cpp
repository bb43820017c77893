#include "ops/mlx/mlx_kv.h"

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>

#include "mlx/primitives.h"
#include "ops/mlx/mlx_test_support.h"

namespace afterglow {
namespace {

using mlx_test::Dice;

mx::Stream cpu_stream() {
  return mx::default_stream(mx::Device::cpu);
}

KvLayout layout_of(KvType type) {
  KvLayout layout;
  layout.layers = {{2, 4, 4, type, 0}, {1, 6, 3, type, 0}};
  return layout;
}

/// A KvState and, token by token, what it must hold.
class KvUnderTest {
 public:
  explicit KvUnderTest(KvType type, std::uint32_t seed = 1)
      : layout_(layout_of(type)),
        pool_(layout_.page_bytes()),
        state_(nullptr, layout_, pool_, cpu_stream()),
        dice_(seed) {
    spoil_free_pages();
  }

  MlxKvState& state() { return state_; }
  PagePool& pool() { return pool_; }
  const KvLayout& layout() const { return layout_; }
  const std::vector<std::vector<float>>& tokens() const { return tokens_; }
  void adopt(const std::vector<std::vector<float>>& tokens) {
    tokens_ = tokens;
  }

  /// A step of n random tokens. Small integers, exact in each type.
  void step(std::size_t n, bool commit = true) {
    state_.reserve(n);
    auto grown = tokens_;
    grown.resize(tokens_.size() + n);
    std::vector<mx::array> outputs;
    for (std::size_t i = 0; i < layout_.layers.size(); ++i) {
      const LayerKv& kv = layout_.layers[i];
      const mx::array k = random(grown, n, kv.kv_heads, kv.k_dim);
      const mx::array v = random(grown, n, kv.kv_heads, kv.v_dim);
      const auto [all_k, all_v] = state_.append(i, k, v);
      EXPECT_EQ(all_k.shape(2), static_cast<int>(grown.size()));
      EXPECT_EQ(all_v.shape(2), static_cast<int>(grown.size()));
    }
    state_.collect(outputs);
    mx::eval(outputs);
    state_.finish(commit, n);
    if (commit) {
      tokens_ = std::move(grown);
    }
  }

  void truncate(std::size_t n) {
    state_.truncate(n);
    tokens_.resize(n);
  }

  /// Compares a page to the model, zeros behind the last token included.
  void expect_page(const Page& page, std::size_t index) const {
    const std::size_t first = index * kPageTokens;
    ASSERT_LT(first, tokens_.size());
    std::size_t at = 0;  // of this layer in a token's numbers
    for (std::size_t i = 0; i < layout_.layers.size(); ++i) {
      const LayerKv& kv = layout_.layers[i];
      const std::byte* k = page.data() + layout_.k_offset(i, kPageTokens);
      const std::byte* v = page.data() + layout_.v_offset(i, kPageTokens);
      std::size_t wrong = 0;
      for (std::size_t t = 0; t < kPageTokens; ++t) {
        const bool held = first + t < tokens_.size();
        for (std::size_t h = 0; h < kv.kv_heads; ++h) {
          for (std::size_t d = 0; d < kv.k_dim; ++d) {
            const float want =
                held ? tokens_[first + t][at + h * kv.k_dim + d] : 0;
            const std::size_t place = (h * kv.k_dim + d) * kPageTokens + t;
            wrong += element(kv.type, k, place) != want;
          }
          for (std::size_t d = 0; d < kv.v_dim; ++d) {
            const float want =
                held ? tokens_[first + t]
                              [at + kv.kv_heads * kv.k_dim + h * kv.v_dim + d]
                     : 0;
            const std::size_t place = (h * kPageTokens + t) * kv.v_dim + d;
            wrong += element(kv.type, v, place) != want;
          }
        }
      }
      EXPECT_EQ(wrong, 0U) << "page " << index << " layer " << i;
      at += std::size_t{kv.kv_heads} * (kv.k_dim + kv.v_dim);
    }
  }

  void expect_all_pages() {
    ASSERT_EQ(state_.length(), tokens_.size());
    for (std::size_t i = 0; i * kPageTokens < tokens_.size(); ++i) {
      expect_page(*state_.seal(i), i);
    }
  }

 private:
  /// Leaves 0xFF in the buffers that the pool hands out next.
  void spoil_free_pages() {
    std::vector<std::shared_ptr<Page>> pages;
    for (int i = 0; i < 8; ++i) {
      pages.push_back(pool_.make());
      std::memset(pages.back()->data(), 0xFF, pages.back()->size());
    }
  }

  mx::array random(
      std::vector<std::vector<float>>& tokens,
      std::size_t n,
      std::size_t heads,
      std::size_t dim
  ) {
    std::vector<float> data(n * heads * dim);
    for (std::size_t t = 0; t < n; ++t) {
      auto& token = tokens[tokens.size() - n + t];
      for (std::size_t h = 0; h < heads; ++h) {
        for (std::size_t d = 0; d < dim; ++d) {
          const auto value = static_cast<float>(dice_.below(255) - 127);
          token.push_back(value);
          data[(h * n + t) * dim + d] = value;
        }
      }
    }
    return mx::array(
        data.data(),
        {1, static_cast<int>(heads), static_cast<int>(n), static_cast<int>(dim)}
    );
  }

  static float element(KvType type, const std::byte* from, std::size_t i) {
    if (type == KvType::kF32) {
      float value;
      std::memcpy(&value, from + 4 * i, 4);
      return value;
    }
    if (type == KvType::kF16) {
      mx::float16_t value;
      std::memcpy(&value, from + 2 * i, 2);
      return static_cast<float>(value);
    }
    mx::bfloat16_t value;
    std::memcpy(&value, from + 2 * i, 2);
    return static_cast<float>(value);
  }

  KvLayout layout_;
  PagePool pool_;
  MlxKvState state_;
  Dice dice_;
  std::vector<std::vector<float>> tokens_;
};

class MlxKv : public testing::TestWithParam<KvType> {};

TEST_P(MlxKv, sealed_pages_lie_as_the_layout_says_with_zeros_behind) {
  KvUnderTest kv(GetParam());
  for (std::size_t n : {1U, 254U, 1U, 1U, 100U, 256U, 3U}) {
    kv.step(n);
    kv.expect_all_pages();
  }
}

TEST_P(MlxKv, restored_pages_seal_to_the_same_content) {
  KvUnderTest first(GetParam());
  first.step(700);
  for (std::size_t tokens : {1U, 255U, 256U, 257U, 512U, 700U}) {
    SCOPED_TRACE(tokens);
    std::vector<PagePtr> pages;
    for (std::size_t i = 0; i * kPageTokens < tokens; ++i) {
      pages.push_back(first.state().seal(i));
    }
    KvUnderTest second(GetParam(), 2);
    second.state().restore(pages, tokens);
    second.adopt(first.tokens());
    second.truncate(tokens);
    second.expect_all_pages();
    // Going on must neither change the pages nor what was restored.
    second.step(300);
    second.expect_all_pages();
    first.expect_all_pages();
  }
}

TEST_P(MlxKv, truncated_tokens_are_gone_and_can_be_replaced) {
  KvUnderTest kv(GetParam());
  kv.step(600);
  const PagePtr before = kv.state().seal(0);
  for (std::size_t tokens : {513U, 512U, 300U, 256U, 40U, 0U}) {
    SCOPED_TRACE(tokens);
    kv.truncate(tokens);
    kv.expect_all_pages();
    kv.step(280);
    kv.expect_all_pages();
  }
  KvUnderTest same(GetParam());
  same.step(600);
  same.expect_page(*before, 0);
}

TEST_P(MlxKv, a_full_page_is_sealed_once) {
  KvUnderTest kv(GetParam());
  kv.step(600);
  const PagePtr full = kv.state().seal(1);
  EXPECT_EQ(full, kv.state().seal(1));
  kv.truncate(511);
  kv.step(1);
  const PagePtr changed = kv.state().seal(1);
  EXPECT_NE(full, changed);
  kv.expect_page(*changed, 1);
}

TEST_P(MlxKv, a_step_not_committed_leaves_all_as_it_was) {
  KvUnderTest kv(GetParam());
  kv.step(250);
  kv.step(50, false);
  kv.expect_all_pages();
  kv.step(20);
  kv.expect_all_pages();
}

TEST_P(MlxKv, bytes_are_those_of_the_arrays_held) {
  KvUnderTest kv(GetParam());
  EXPECT_EQ(kv.state().bytes(), 0U);
  kv.step(1);
  EXPECT_EQ(kv.state().bytes(), kv.layout().page_bytes());
  kv.step(300);
  EXPECT_EQ(kv.state().bytes(), 2 * kv.layout().page_bytes());
}

/// An operation that fails when it is computed, as one without memory does.
class Failing final : public mx::Primitive {
 public:
  explicit Failing(mx::Stream stream) : Primitive(stream) {}
  void eval_cpu(const std::vector<mx::array>&, std::vector<mx::array>&)
      override {
    throw std::runtime_error("out of luck");
  }
  void eval_gpu(const std::vector<mx::array>& in, std::vector<mx::array>& out)
      override {
    eval_cpu(in, out);
  }
  const char* name() const override { return "Failing"; }
};

TEST_P(MlxKv, an_eval_that_throws_costs_no_token) {
  // The failure hits K or V of either layer; what else was computed by then
  // differs, and must not matter.
  for (int hit = 0; hit < 4; ++hit) {
    SCOPED_TRACE(hit);
    KvUnderTest kv(GetParam());
    kv.step(300);
    MlxKvState& state = kv.state();
    state.reserve(2);
    for (std::size_t i = 0; i < 2; ++i) {
      const LayerKv& layer = kv.layout().layers[i];
      const auto update = [&](std::uint32_t dim, bool fail) {
        const mx::Shape shape = {
            1, static_cast<int>(layer.kv_heads), 2, static_cast<int>(dim)};
        const mx::Dtype type = mx::float32;
        return fail ? mx::array(
                          shape,
                          type,
                          std::make_shared<Failing>(cpu_stream()),
                          {}
                      )
                    : mx::ones(shape, type, cpu_stream());
      };
      const int at = static_cast<int>(2 * i);
      (void)state.append(
          i, update(layer.k_dim, hit == at), update(layer.v_dim, hit == at + 1)
      );
    }
    std::vector<mx::array> outputs;
    state.collect(outputs);
    EXPECT_THROW(mx::eval(std::move(outputs)), std::runtime_error);
    state.recover();
    state.finish(false, 2);
    EXPECT_EQ(state.broken(), "");
    kv.expect_all_pages();
    kv.step(5);
    kv.expect_all_pages();
  }
}

TEST_P(MlxKv, memory_of_a_step_is_reused_not_copied) {
  KvUnderTest kv(GetParam());
  kv.step(10);
  const std::size_t before = mx::get_active_memory();
  mx::reset_peak_memory();
  for (int i = 0; i < 20; ++i) {
    kv.step(1);
  }
  // All that is needed beside the arrays are the updates of one token.
  EXPECT_LT(mx::get_peak_memory(), before + kv.state().bytes() / 8);
}

INSTANTIATE_TEST_SUITE_P(
    Types,
    MlxKv,
    testing::Values(KvType::kF32, KvType::kF16, KvType::kBF16),
    [](const auto& info) { return std::string(to_string(info.param)); }
);

}  // namespace
}  // namespace afterglow
