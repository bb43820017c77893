#include "base/hash.h"

#include <gtest/gtest.h>

#include <string_view>

namespace afterglow {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// FIPS 180-4 example.
TEST(Sha256, KnownAnswer) {
  EXPECT_EQ(
      hex(Sha256().bytes(bytes_of("abc")).finish()),
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
  );
}

TEST(Sha256, FieldsCannotBeShifted) {
  auto a = Sha256().text("ab").text("c").finish();
  auto b = Sha256().text("a").text("bc").finish();
  EXPECT_NE(a, b);
}

TEST(Sha256, IntegersAreLittleEndian) {
  auto number = Sha256().u32(0x64636261).finish();
  EXPECT_EQ(number, Sha256().bytes(bytes_of("abcd")).finish());
}

// The empty input's sums in the specification's reference implementation.
TEST(Xxh3, KnownAnswers) {
  EXPECT_EQ(xxh3_64({}), 0x2d06800538d394c2u);
  EXPECT_EQ(hex(xxh3_128({})), "99aa06d3014798d86001c324468d497f");
}

}  // namespace
}  // namespace afterglow
