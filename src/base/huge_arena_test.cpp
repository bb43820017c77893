#include "base/huge_arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace afterglow {
namespace {

TEST(HugeArena, ArraysAreApartAndStartACacheLine) {
  HugeArena arena;
  std::byte* before = nullptr;
  for (std::size_t bytes : {1u, 64u, 65u, 1000u}) {
    std::byte* array = arena.take(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array) % 64, 0u);
    if (before != nullptr) {
      EXPECT_GE(array, before);
    }
    std::memset(array, 1, bytes);
    before = array + bytes;
  }
}

TEST(HugeArena, AnArrayLargerThanAMappingGetsItsOwn) {
  HugeArena arena;
  std::byte* small = arena.take(10);
  std::size_t large = std::size_t{100} << 20;
  std::byte* array = arena.take(large);
  small[9] = std::byte{1};
  array[0] = std::byte{2};
  array[large - 1] = std::byte{3};
  EXPECT_EQ(small[9], std::byte{1});
  std::byte* next = arena.take(10);
  EXPECT_TRUE(next + 10 <= array || next >= array + large);
}

}  // namespace
}  // namespace afterglow
