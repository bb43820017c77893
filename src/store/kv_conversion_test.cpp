#include "store/kv_conversion.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "base/token.h"

namespace afterglow {
namespace {

KvLayout layout_of(KvType type, std::uint32_t heads = 2) {
  KvLayout layout;
  layout.layers = {{heads, 8, 4, type, 0}, {heads, 8, 4, type, 0}};
  return layout;
}

std::shared_ptr<Page> numbered(const KvLayout& layout, PagePool& pool) {
  std::shared_ptr<Page> page = pool.make();
  for (std::size_t i = 0; i < page->size() / 4; ++i) {
    const float value = static_cast<float>(i % 1999) / 8 - 100;
    std::memcpy(page->data() + 4 * i, &value, 4);
  }
  EXPECT_EQ(layout.page_bytes(), page->size());
  return page;
}

TEST(KvConversion, ThereAndBackIsTheSame) {
  const KvLayout wide = layout_of(KvType::kF32);
  const KvLayout narrow = layout_of(KvType::kF16);
  PagePool wides(wide.page_bytes());
  PagePool narrows(narrow.page_bytes());
  const auto from = numbered(wide, wides);
  const auto half = narrows.make();
  const auto back = wides.make();
  ASSERT_TRUE(convert_page(*from, wide, narrow, kPageTokens, *half).ok());
  ASSERT_TRUE(convert_page(*half, narrow, wide, kPageTokens, *back).ok());
  EXPECT_EQ(std::memcmp(from->data(), back->data(), from->size()), 0);
}

TEST(KvConversion, LooksAtTheGivenTokensOnly) {
  const KvLayout wide = layout_of(KvType::kF32);
  const KvLayout narrow = layout_of(KvType::kF16);
  PagePool wides(wide.page_bytes());
  PagePool narrows(narrow.page_bytes());
  const auto from = numbered(wide, wides);
  // Token 9 of the first head's first row of K, in the second layer.
  const float large = 1e6F;
  std::memcpy(from->data() + wide.k_offset(1, kPageTokens) + 9 * 4, &large, 4);
  const auto to = narrows.make();
  EXPECT_TRUE(convert_page(*from, wide, narrow, 9, *to).ok());
  const Status refused = convert_page(*from, wide, narrow, 10, *to);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kCorrupt);
  EXPECT_NE(refused.error().message.find("layer 1"), std::string::npos);
  EXPECT_NE(refused.error().message.find("token 9"), std::string::npos);
}

TEST(KvConversion, ShapesAreComparedByName) {
  const KvLayout model = layout_of(KvType::kF16);
  EXPECT_TRUE(check_same_shapes(layout_of(KvType::kF32), model).ok());
  EXPECT_FALSE(have_same_types(layout_of(KvType::kF32), model));
  EXPECT_TRUE(have_same_types(model, model));
  KvLayout other = layout_of(KvType::kF16, 3);
  EXPECT_EQ(
      check_same_shapes(other, model).error().message,
      "layer 0: 3 heads of 8 and 4, but the model has 2 heads of 8 and 4"
  );
  other.layers.pop_back();
  EXPECT_EQ(
      check_same_shapes(other, model).error().message,
      "1 layers, but the model has 2"
  );
  KvLayout windowed = model;
  windowed.layers[1].window = 128;
  EXPECT_EQ(
      check_same_shapes(model, windowed).error().code, Code::kUnsupported
  );
}

}  // namespace
}  // namespace afterglow
