#include "engine/random.h"

namespace afterglow {

std::array<std::uint32_t, 4> philox(
    std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key
) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    std::uint64_t product0 = kMultiplier0 * counter[0];
    std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {
        static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
        static_cast<std::uint32_t>(product1),
        static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
        static_cast<std::uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

double uniform_at(
    std::uint64_t seed, std::uint64_t position, std::uint32_t draw
) {
  auto bits = philox(
      {static_cast<std::uint32_t>(position),
       static_cast<std::uint32_t>(position >> 32),
       draw,
       0},
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}
  );
  std::uint64_t joined = std::uint64_t{bits[1]} << 32 | bits[0];
  return static_cast<double>(joined >> 11) * 0x1p-53;
}

}  // namespace afterglow
