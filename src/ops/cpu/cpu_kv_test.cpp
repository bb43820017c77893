#include "ops/cpu/cpu_kv.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/dispatch/dispatch.h"
#include "kernels/testing/guarded.h"
#include "ops/cpu/cpu_test_model.h"

namespace afterglow {
namespace {

using test::Random;
using test::random_tokens;
using test::same_bits;
using test::TinyModel;

class CpuKvTest : public testing::Test {
 protected:
  std::vector<std::byte> bytes_of(const Page& page) {
    return {page.data(), page.data() + page.size()};
  }
  std::span<const Token> tokens(std::size_t first, std::size_t count) {
    return {tokens_.data() + first, count};
  }

  Random random_{23};
  std::vector<Token> tokens_ = random_tokens(700, random_);
  ThreadPool pool_{1};
  TinyModel model_{pool_, Activations::kInt8, *available_kernels().back()};
};

TEST_F(CpuKvTest, a_frozen_page_is_never_written_again) {
  auto kv = model_.new_kv();
  model_.feed(*kv, tokens(0, 100));
  PagePtr frozen = kv->seal(0);
  std::vector<std::byte> before = bytes_of(*frozen);
  model_.feed(*kv, tokens(100, 50));
  EXPECT_TRUE(same_bits(before, bytes_of(*frozen)));
  EXPECT_NE(kv->seal(0), frozen);
}

TEST_F(CpuKvTest, sealing_again_without_an_append_gives_the_same_page) {
  auto kv = model_.new_kv();
  model_.feed(*kv, tokens(0, 300));
  EXPECT_EQ(kv->seal(0), kv->seal(0));
  EXPECT_EQ(kv->seal(1), kv->seal(1));
}

TEST_F(CpuKvTest, full_pages_are_shared_and_a_part_is_copied) {
  auto kv = model_.new_kv();
  model_.feed(*kv, tokens(0, 600));
  std::vector<PagePtr> pages{kv->seal(0), kv->seal(1), kv->seal(2)};
  auto other = model_.new_kv();
  other->restore({pages.data(), 2}, 300);
  EXPECT_EQ(other->seal(0), pages[0]);
  EXPECT_NE(other->seal(1), pages[1]);
  auto exact = model_.new_kv();
  exact->restore({pages.data(), 2}, 512);
  EXPECT_EQ(exact->seal(1), pages[1]);
}

TEST_F(CpuKvTest, two_sequences_share_a_page_and_diverge) {
  auto kv = model_.new_kv();
  model_.feed(*kv, tokens(0, 300));
  std::vector<PagePtr> pages{kv->seal(0), kv->seal(1)};
  auto a = model_.new_kv();
  auto b = model_.new_kv();
  a->restore(pages, 300);
  b->restore(pages, 300);
  std::vector<Token> left = random_tokens(30, random_);
  std::vector<Token> right = random_tokens(30, random_);
  // Interleaved, so that a shared column would be overwritten.
  std::vector<float> got_a;
  std::vector<float> got_b;
  for (std::size_t i = 0; i < 30; ++i) {
    auto logits_a = model_.feed(*a, {&left[i], 1});
    auto logits_b = model_.feed(*b, {&right[i], 1});
    got_a.insert(got_a.end(), logits_a.begin(), logits_a.end());
    got_b.insert(got_b.end(), logits_b.begin(), logits_b.end());
  }
  for (auto [tail, got] : {std::pair{&left, &got_a}, {&right, &got_b}}) {
    auto cold = model_.new_kv();
    model_.feed(*cold, tokens(0, 300));
    EXPECT_TRUE(same_bits(model_.feed(*cold, *tail), *got));
  }
}

TEST_F(CpuKvTest, a_sealed_tail_is_zero_up_to_its_stored_width) {
  // The pool's spare buffers hold another sequence's numbers.
  {
    auto noise = model_.new_kv();
    model_.feed(*noise, tokens(0, 600));
  }
  auto kv = model_.new_kv();
  model_.feed(*kv, tokens(0, 70));
  PagePtr page = kv->seal(0);
  const KvLayout& layout = model_.layout();
  for (std::size_t i = 0; i < layout.layers.size(); ++i) {
    const LayerKv& layer = layout.layers[i];
    auto* k = reinterpret_cast<const std::uint16_t*>(
        page->data() + layout.k_offset(i, kPageTokens)
    );
    auto* v = reinterpret_cast<const std::uint16_t*>(
        page->data() + layout.v_offset(i, kPageTokens)
    );
    for (std::size_t row = 0; row < layer.kv_heads * layer.k_dim; ++row) {
      for (std::size_t t = 70; t < 128; ++t) {
        ASSERT_EQ(k[row * kPageTokens + t], 0);
      }
    }
    for (std::size_t head = 0; head < layer.kv_heads; ++head) {
      for (std::size_t t = 70; t < 128; ++t) {
        for (std::size_t d = 0; d < layer.v_dim; ++d) {
          ASSERT_EQ(v[(head * kPageTokens + t) * layer.v_dim + d], 0);
        }
      }
    }
  }
}

TEST_F(CpuKvTest, pages_go_back_when_no_one_holds_them) {
  {
    auto kv = model_.new_kv();
    model_.feed(*kv, tokens(0, 600));
    EXPECT_EQ(model_.pages().live_pages(), 3);
    EXPECT_EQ(kv->bytes(), 3 * model_.layout().page_bytes());
    kv->truncate(257);
    EXPECT_EQ(model_.pages().live_pages(), 2);
    kv->truncate(0);
    EXPECT_EQ(model_.pages().live_pages(), 0);
    model_.feed(*kv, tokens(0, 10));
  }
  EXPECT_EQ(model_.pages().live_pages(), 0);
}

}  // namespace
}  // namespace afterglow
