#include "base/page.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/kv_layout.h"

namespace afterglow {
namespace {

TEST(PagePool, CountsPagesThatAnyoneHolds) {
  PagePool pool(8192);
  auto page = pool.make();
  PagePtr shared = page;
  EXPECT_EQ(pool.live_pages(), 1u);
  page.reset();
  EXPECT_EQ(pool.live_pages(), 1u);
  shared.reset();
  EXPECT_EQ(pool.live_pages(), 0u);
}

TEST(PagePool, PagesMayOutliveThePool) {
  std::optional<PagePool> pool(4096);
  auto page = pool->make();
  pool.reset();
  page->data()[4095] = std::byte{1};
  EXPECT_EQ(page->size(), 4096u);
}

TEST(PagePool, PagesStartAtMultiplesOf4096) {
  PagePool pool(100);
  for (int i = 0; i < 3; ++i) {
    auto page = pool.make();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(page->data()) % 4096, 0u);
  }
}

TEST(KvLayout, PartsFollowOneAnother) {
  KvLayout layout;
  layout.layers.push_back({3, 64, 64, KvType::kF16, 0});
  layout.layers.push_back({2, 32, 16, KvType::kF32, 0});
  EXPECT_EQ(layout.k_offset(0, 256), 0u);
  EXPECT_EQ(layout.v_offset(0, 256), 3u * 64 * 256 * 2);
  EXPECT_EQ(layout.k_offset(1, 256), 2u * 3 * 64 * 256 * 2);
  EXPECT_EQ(
      layout.v_offset(1, 256), layout.k_offset(1, 256) + 2u * 32 * 256 * 4
  );
  EXPECT_EQ(layout.page_bytes(), layout.v_offset(1, 256) + 2u * 16 * 256 * 4);
  EXPECT_EQ(layout.block_bytes(64) * 4, layout.page_bytes());
}

TEST(KvLayout, TailsAreRoundedUp) {
  EXPECT_EQ(KvLayout::width_for(1), 64u);
  EXPECT_EQ(KvLayout::width_for(64), 64u);
  EXPECT_EQ(KvLayout::width_for(65), 128u);
  EXPECT_EQ(KvLayout::width_for(256), 256u);
}

TEST(KvLayout, DescriptionTellsLayoutsApart) {
  KvLayout a;
  a.layers.push_back({3, 64, 64, KvType::kF16, 0});
  KvLayout b = a;
  b.layers[0].window = 128;
  KvLayout c = a;
  c.layers[0].type = KvType::kBF16;
  EXPECT_NE(a.describe(), b.describe());
  EXPECT_NE(a.describe(), c.describe());
}

}  // namespace
}  // namespace afterglow
