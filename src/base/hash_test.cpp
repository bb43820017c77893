#include "base/hash.h"

#include <gtest/gtest.h>

#include <string>
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

// RFC 4231, test cases 2 and 6 (a key longer than a block).
TEST(HmacSha256, KnownAnswers) {
  EXPECT_EQ(
      hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
  );
  EXPECT_EQ(
      hex(hmac_sha256(
          std::string(131, '\xaa'),
          "Test Using Larger Than Block-Size Key - Hash Key First"
      )),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
  );
}

// The empty input's sums in the specification's reference implementation.
TEST(Xxh3, KnownAnswers) {
  EXPECT_EQ(xxh3_64({}), 0x2d06800538d394c2u);
  EXPECT_EQ(hex(xxh3_128({})), "99aa06d3014798d86001c324468d497f");
}

}  // namespace
}  // namespace afterglow
